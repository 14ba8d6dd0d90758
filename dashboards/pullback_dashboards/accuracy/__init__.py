"""How often Pullback was right in a project, as people judged it."""
