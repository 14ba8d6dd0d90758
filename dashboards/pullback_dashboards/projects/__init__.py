"""The list of projects."""
