"""How the service is doing: what waits, what is stuck, what to do about it."""
