"""Reading bundles at the command line: open one, inspect it, map an instruction back to its source."""
