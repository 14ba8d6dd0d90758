"""SciPy for functions that are differentiated: `from pullback.scipy import special, stats`.

SciPy's ufuncs take part in NumPy's protocols and need no stand-in; many of its other functions turn every argument into
a plain array. Those are offered here, under SciPy's names and signatures. SciPy is imported when a part is first used.

>>> pb.grad(pb.scipy.special.logsumexp)(np.zeros(2))
array([0.5, 0.5])
"""

import importlib
from typing import Any

__all__ = ["fft", "integrate", "linalg", "signal", "special", "stats"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"pullback.scipy has no {name!r}; it has {', '.join(__all__)}")
    return importlib.import_module(f"pullback.scipy.{name}")
