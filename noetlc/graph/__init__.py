"""The net of a playbook: what can be reached, what can go wrong on the way, and pictures of it."""
