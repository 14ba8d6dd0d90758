"""Reductions of lists: `np.sum([x, y])`. NumPy converts a list to an array before it calls any protocol."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from pullback.numpy.creation import array, holds_traced


def _of_lists(reduction: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(reduction)
    def reduced(a: Any, *args: Any, **keywords: Any) -> Any:
        return reduction(array(a) if isinstance(a, list | tuple) and holds_traced(a) else a, *args, **keywords)

    return reduced


all = _of_lists(np.all)  # noqa: A001 (NumPy's names, here and below)
any = _of_lists(np.any)  # noqa: A001
max = _of_lists(np.max)  # noqa: A001
mean = _of_lists(np.mean)
min = _of_lists(np.min)  # noqa: A001
prod = _of_lists(np.prod)
std = _of_lists(np.std)
sum = _of_lists(np.sum)  # noqa: A001
var = _of_lists(np.var)
