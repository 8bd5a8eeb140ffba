"""Secrets: their sources (S44), and their removal from everything that is recorded (S45)."""
