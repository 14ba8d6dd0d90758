"""A made project as large as the pages must bear, to look at and to test with: 500 workloads, 20 machines, wild names."""
