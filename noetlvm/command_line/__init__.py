"""The command lines of both programs: declared options, their two readers, and the process around a command."""
