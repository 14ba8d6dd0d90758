"""One incident: its evidence, what happened to it, what was said of it."""
