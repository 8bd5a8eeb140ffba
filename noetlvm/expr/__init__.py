"""Expressions as both sides know them: the names a template sees, and the filters, tests and methods it may use."""
