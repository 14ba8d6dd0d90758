"""What callers may write in many ways, in the one form that translations work with."""

from typing import Any

import numpy as np

from pullback.primitive import Traced


def as_operand(x: Any) -> Any:
    """An array or a traced value as it is; a list or a Python number as an array."""
    return x if isinstance(x, Traced | np.ndarray | np.generic) else np.asarray(x)


def normalized_axis(axis: Any, ndim: int) -> int:
    """One axis, non-negative."""
    return int(np.lib.array_utils.normalize_axis_index(axis, ndim))
