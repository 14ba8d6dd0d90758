"""Readings: a series at a commit, pooled over its reports and stored."""
