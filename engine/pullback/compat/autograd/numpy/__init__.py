"""NumPy for programs that write `import pullback.compat.autograd.numpy as np`: `pullback.numpy`, and what they add to it."""

import numpy as np

import pullback.numpy
from pullback.compat.autograd.numpy import fft, linalg, numpy_boxes, numpy_vjps, random
from pullback.compat.autograd.numpy.building import append, make_diagonal, select, where
from pullback.compat.autograd.numpy.integers import int8, int16, int32, int64
from pullback.namespaces import the_rest_of

__all__ = [
    "append",
    "fft",
    "int8",
    "int16",
    "int32",
    "int64",
    "linalg",
    "make_diagonal",
    "numpy_boxes",
    "numpy_vjps",
    "random",
    "select",
    "where",
]
# The names of a star import.
__all__ += [name for name in pullback.numpy.__all__ if name not in __all__ and not name.startswith("__")]

__version__ = np.__version__
__getattr__, __dir__ = the_rest_of("pullback.numpy", __name__)
