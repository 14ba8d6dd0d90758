"""Signatures of calls of a compiled function: the structure of the arguments and the type of every leaf."""

from typing import Any

import numpy as np

from pullback import trees
from pullback.core.types import is_array

_NUMBERS = frozenset({bool, int, float, complex})


def signature(args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...] | list[Any]]:
    """Key of a call, and its leaves in order.

    Arguments that are all arrays and Python numbers, the usual case, are their own leaves and cost no walk over trees.
    """
    key: list[Any] = []
    for argument in args:
        kind = type(argument)
        if kind is np.ndarray:
            key.append(argument.shape)
            key.append(argument.dtype)
        elif kind in _NUMBERS:
            key.append(kind)
        else:
            leaves = trees.flatten(args)[0]
            return (trees.structure(args), *map(_leaf_key, leaves)), leaves
    return tuple(key), args


def _leaf_key(leaf: Any) -> Any:
    if not is_array(leaf):
        return type(leaf)
    return type(leaf), leaf.shape, leaf.dtype, leaf.device
