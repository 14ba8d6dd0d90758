"""Errors and speed of the elementary functions of native programs."""
