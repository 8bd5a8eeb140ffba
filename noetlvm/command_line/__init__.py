"""What the command lines of both programs share: how options are declared and read, how a process begins and ends."""
