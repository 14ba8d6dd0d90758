"""Standardized gradient workloads, their measurement, and the agent that runs them."""
