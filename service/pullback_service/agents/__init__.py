"""Agents: the daemons that take jobs on machines."""
