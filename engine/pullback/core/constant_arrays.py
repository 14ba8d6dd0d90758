"""Constants as arrays that are made once: to a ufunc a Python number is a new array each time.

A rule that writes into arrays of a plan takes its constants from here, and allocates nothing.
"""

from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=4096)
def number(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A number as a read-only array of shape ()."""
    array = np.array(value, dtype)
    array.flags.writeable = False
    return array
