"""Machines: the hardware results come from."""
