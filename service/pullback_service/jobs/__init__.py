"""Jobs: work for agents, with leases, logs and results."""
