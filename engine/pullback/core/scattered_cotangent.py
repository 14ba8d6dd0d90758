"""A cotangent that is zero everywhere but at one key."""

from typing import Any

import numpy as np

from pullback.core.types import Shape
from pullback.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ScatteredCotangent:
    """`value` at `key` of an array of zeros; made in constant time, whatever the shape.

    With arrays of positions (see `pullback.rules.gathering`) the key may name one element several times; then its
    values add up.
    """

    value: Any
    key: Any
    shape: Shape
    dtype: np.dtype[Any]
    positions: tuple[Any, ...] = ()
