"""The Petri net of a playbook and what can be reached in it: one question a file.

`source` builds it from the syntax tree and `program` from a bundle; `lint` and `graph` read the same findings of it.
"""
