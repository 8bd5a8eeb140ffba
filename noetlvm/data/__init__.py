"""Data at rest: its encoding, references to stored results, the mask of a secret, and events."""
