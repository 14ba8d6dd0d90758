"""The check of a commit against where it parted from its base: what changed, what is missing, and whether that can be known."""
