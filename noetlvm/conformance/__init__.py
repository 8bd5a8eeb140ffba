"""The conformance suite: reads it, runs an implementation on it in any mode, and checks the results."""
