"""`r_` and `c_`: arrays joined by writing them between brackets."""

from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.numpy.creation import array, holds_traced


class _Concatenator:
    """Joins what is between the brackets; the original does it where nothing is traced."""

    def __init__(self, original: Any, name: str, *, columns: bool) -> None:
        self._original = original
        self._name = name
        self._columns = columns

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(holds_traced(part) for part in parts):
            return self._original[key]
        if any(isinstance(part, str) for part in parts):
            raise TracingError(f"{self._name} with a directive in a string cannot be traced; use numpy.concatenate")
        return np.concatenate([self._piece(part) for part in parts], axis=-1 if self._columns else 0)

    def _piece(self, part: Any) -> Any:
        if isinstance(part, slice):
            return self._original[part]
        piece = array(part, ndmin=1)
        return np.reshape(piece, (-1, 1)) if self._columns and np.ndim(piece) == 1 else piece


r_ = _Concatenator(np.r_, "r_", columns=False)
c_ = _Concatenator(np.c_, "c_", columns=True)
