"""Transformations of a function to its derivatives, batches and linear maps."""
