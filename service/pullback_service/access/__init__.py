"""Access control: callers, the scope that each endpoint needs, and limits on requests."""
