"""Stores results that are too large for an event, under the hash of their bytes (S46)."""
