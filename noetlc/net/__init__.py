"""The Petri net of a playbook, its guards as formulas, and what can be reached in it: one question a file.

Built from the syntax tree by `noetlc.analysis` for the linter, and from a program by `noetlc.graph` for its reports.
"""
