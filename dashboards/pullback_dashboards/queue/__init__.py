"""The queue: what is measured now, what waits and why, what was done."""
