"""Linear algebra: `pullback.numpy.linalg`, and norms of lists of traced values."""

from typing import Any

import numpy as np

from pullback.namespaces import the_rest_of
from pullback.numpy import array


def norm(x: Any, *args: Any, **kwargs: Any) -> Any:
    """`numpy.linalg.norm`, of lists of traced values too."""
    return np.linalg.norm(array(x) if isinstance(x, list | tuple) else x, *args, **kwargs)


__getattr__, __dir__ = the_rest_of("pullback.numpy.linalg", __name__)
