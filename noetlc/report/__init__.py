"""How findings are shown: resolved rows, and one file for each output format."""
