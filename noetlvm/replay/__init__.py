"""Decides a recorded execution again, with its own playbook or an edited one, on the outcomes that its log has."""
