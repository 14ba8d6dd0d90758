"""Kernels: what a node, or a group of nodes, becomes."""
