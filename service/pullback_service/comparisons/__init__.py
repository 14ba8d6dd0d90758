"""Comparisons: what changed between two commits, series by series, and how sure that is."""
