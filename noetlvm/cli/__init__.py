"""The `noetlvm` command line: one file for each command. Commands parse options and print; the work is elsewhere."""
