"""Rewritings that are worth doing to any graph: those of programs, and those that loops and branches are made of."""
