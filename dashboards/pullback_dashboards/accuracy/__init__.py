"""A page of how often Pullback was right in a project, as people judged it."""
