"""Backfills: jobs for the commits of a branch that nobody has measured."""
