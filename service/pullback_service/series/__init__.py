"""Cases, series and points: what the pages and the API read."""
