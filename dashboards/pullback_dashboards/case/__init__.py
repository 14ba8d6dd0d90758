"""The page of one case at one commit."""
