"""What changed at a commit, in words: said alike by the overview, the feed and the page of a commit."""
