"""The command line of the virtual machine: one file a command. It only speaks; what it says is decided elsewhere."""
