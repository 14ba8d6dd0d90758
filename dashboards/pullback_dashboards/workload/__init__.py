"""One workload across commits: memory and speed of every variant against the baseline."""
