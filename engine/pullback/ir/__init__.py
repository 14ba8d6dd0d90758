"""The typed graph: what it is made of, how it is printed, what is checked about it."""
