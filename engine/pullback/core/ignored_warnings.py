"""Floating-point warnings that are ignored: a rule passes through infinity on its way to the right number."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

_ours: ContextVar[bool] = ContextVar("pullback_quiet", default=False)


@contextmanager
def ignoring(warning: str) -> Iterator[None]:
    """Silence a kind of warning as numpy.errstate does, for operations of the engine that are not the user's."""
    token = _ours.set(True)
    try:
        with np.errstate(**{warning: "ignore"}):  # type: ignore[arg-type]  # the names are NumPy's
            yield
    finally:
        _ours.reset(token)


def is_ours() -> bool:
    """True if the engine has changed how floating-point errors are handled."""
    return _ours.get()
