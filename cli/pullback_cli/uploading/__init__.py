"""Sending files to a service: what is packed, what git knows, and the one request."""
