"""Functions of single matrices, run over stacks of them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np


def over_stacks(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of matrices, for stacks that broadcast against each other; keywords go to every call."""

    @wraps(function)
    def stacked(*matrices: Any, **options: Any) -> Any:
        if all(matrix.ndim == 2 for matrix in matrices):
            return function(*matrices, **options)
        stack = np.broadcast_shapes(*(matrix.shape[:-2] for matrix in matrices))
        full = [np.broadcast_to(matrix, (*stack, *matrix.shape[-2:])) for matrix in matrices]
        if not np.prod(stack, dtype=np.int64):
            example = function(*(np.eye(*matrix.shape[-2:], dtype=matrix.dtype) for matrix in matrices), **options)
            return np.zeros((*stack, *example.shape), example.dtype)
        results = [function(*(matrix[place] for matrix in full), **options) for place in np.ndindex(stack)]
        return np.reshape(np.stack(results), (*stack, *results[0].shape))

    return stacked
