"""The model of a playbook for rules and the compiler, and what follows from it. Nothing here reports."""
