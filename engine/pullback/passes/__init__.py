"""Passes: graph in, graph out, in the order of `pipeline`."""
