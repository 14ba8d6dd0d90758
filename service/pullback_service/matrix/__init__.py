"""The matrix: the newest state of a project, workloads by variants."""
