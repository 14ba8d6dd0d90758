"""The check of a commit against its merge base: what changed, what is missing, and whether that can be known."""
