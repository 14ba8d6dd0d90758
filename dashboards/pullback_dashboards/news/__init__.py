"""Changes at a commit, in words: the same on the overview, the feed and the page of a commit."""
