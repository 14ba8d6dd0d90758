"""From a function and its arguments to a plan: what it takes from around it, its program, its results."""
