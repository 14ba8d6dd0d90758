"""One job: how far it is, its attempts, its log, and what may be decided about it."""
