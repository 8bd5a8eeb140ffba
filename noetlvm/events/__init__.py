"""Events of an execution. Their names exist once, in the catalogue."""
