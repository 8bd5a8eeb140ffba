"""Deterministic simulation of the service: random playbooks, random faults, and a checker that reads only the logs."""
