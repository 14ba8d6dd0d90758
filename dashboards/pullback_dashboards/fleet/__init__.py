"""Machines and their agents, and how the service is doing."""
