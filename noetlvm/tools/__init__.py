"""Tools: one file a kind, with its declaration `KIND` and, where a worker runs it, `run`."""
