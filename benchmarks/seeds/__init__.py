"""The requirements of the four seeds that time: rows by seed, measured and printed by `python -m benchmarks.seeds`."""
