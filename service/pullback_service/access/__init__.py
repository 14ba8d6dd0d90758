"""Who may do what: callers, the table of endpoints, what a caller's sessions see, how often a caller may ask."""
