"""Quantum jobs as tasks of a playbook: an example of a plugin for noetlvm."""
