"""Evaluates expressions: verified stack code becomes Python functions that charge fuel; filters, tests and methods."""
