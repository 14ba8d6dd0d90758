"""The page that compares two commits."""
