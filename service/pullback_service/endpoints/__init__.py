"""The routes of the API, one module a resource: what is asked and answered, and by which queries."""
