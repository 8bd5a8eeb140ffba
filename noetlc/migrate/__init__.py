"""Rewrites playbooks of other dialects as canonical v10, with minimal edits."""
