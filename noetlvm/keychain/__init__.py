"""Secrets: where they come from (S44), and how they are kept out of everything that is recorded (S45)."""
