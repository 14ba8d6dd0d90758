"""Compilation of a function with its arguments to a plan: captured environment, program, results."""
