"""Who measures what right now, what waits, and what was done: the fleet's line, the queue, a job with its log."""
