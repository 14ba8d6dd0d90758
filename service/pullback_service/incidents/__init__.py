"""Incidents: what changed since which commit, found in steps, failures and readings along the trunk."""
