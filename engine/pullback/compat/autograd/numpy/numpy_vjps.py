"""Functions that derivatives of a program's own primitives use: sums over the axes along which an argument was broadcast."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import kinds


def unbroadcast(g: Any, target: Any) -> Any:
    """A cotangent in the shape of the argument it belongs to, and real if that is real."""
    if np.iscomplexobj(g) and not np.iscomplexobj(target):
        g = np.real(g)
    return kinds.unbroadcast(g, np.shape(target), g.dtype)


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A pullback whose cotangents are summed to the shape of its argument."""
    return lambda g: unbroadcast(f(g), target)
