"""Backends: ways to run a schedule."""
