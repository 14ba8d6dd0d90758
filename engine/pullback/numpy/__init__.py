"""NumPy for functions that are differentiated: `import pullback.numpy as np`.

Everything here is NumPy's, under NumPy's names. Most of it is NumPy's own function, because traced values take part in
NumPy's protocols and plain `import numpy as np` is enough. The exceptions are the functions that never ask their
arguments: they build arrays out of what they are given (`array`, `full`, `r_`…), and here they accept traced values.

>>> pb.grad(lambda x: np.sum(pb.numpy.array([x, 2 * x]) ** 2))(3.0)
30.0
"""

import numpy as np

from pullback.namespaces import the_rest_of
from pullback.numpy import fft, linalg, random
from pullback.numpy.creation import (
    arange,
    array,
    asanyarray,
    asarray,
    ascontiguousarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    identity,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from pullback.numpy.joining import c_, r_
from pullback.numpy.lists import all, any, max, mean, min, prod, std, sum, var  # noqa: A004 (NumPy's names)
from pullback.numpy.vectorizing import vectorize
from pullback.numpy_api.storing import added, updated

__all__ = [
    "added",
    "all",
    "any",
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "c_",
    "empty",
    "empty_like",
    "eye",
    "fft",
    "full",
    "full_like",
    "identity",
    "linalg",
    "max",
    "mean",
    "min",
    "ones",
    "ones_like",
    "prod",
    "r_",
    "random",
    "std",
    "sum",
    "updated",
    "var",
    "vectorize",
    "zeros",
    "zeros_like",
]
__all__ += [name for name in np.__all__ if name not in __all__]  # a star import gives NumPy's whole surface

__getattr__, __dir__ = the_rest_of("numpy", __name__)
