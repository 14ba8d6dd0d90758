"""Logins: browsers that showed a token once."""
