"""Flat vectors, optimizers, fixed points and cached graphs."""

from pullback.compat.autograd.misc.flatten import flatten
from pullback.compat.autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]
