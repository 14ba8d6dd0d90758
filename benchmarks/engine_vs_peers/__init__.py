"""Our engine against its peers, row by row, as asked of it: `python -m benchmarks.engine_vs_peers --help`."""
