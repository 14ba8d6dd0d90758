"""Chores: what is done later, by `pullback worker`."""
