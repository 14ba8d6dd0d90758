"""Commits and their order in history."""
