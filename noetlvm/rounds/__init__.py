"""The server's side: takes inputs of executions, decides, writes, and acts on the effects."""
