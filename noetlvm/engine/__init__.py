"""Drives executions in one process: performs what the pure machine asks for, and makes durable what it decides."""
