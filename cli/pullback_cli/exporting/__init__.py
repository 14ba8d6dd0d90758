"""Requests of `pullback export`, and how the answer becomes a file."""
