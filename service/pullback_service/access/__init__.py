"""Who may do what: callers, the table of endpoints, how often a caller may ask."""
