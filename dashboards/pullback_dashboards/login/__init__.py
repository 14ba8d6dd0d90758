"""Signing in with a token, and out."""
