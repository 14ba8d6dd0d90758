"""Measurement of a case: gradient checked, memory counted, then timed in lockstep groups."""
