"""Incidents of a project: what changed since which commit."""
