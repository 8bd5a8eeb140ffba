"""The assembly language: a program as text, and back."""
