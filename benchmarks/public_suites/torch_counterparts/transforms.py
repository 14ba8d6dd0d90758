"""Fourier transforms: torch names the axes otherwise."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Counterpart = Callable[..., Any]


def _fft(name: str) -> Counterpart:
    transform = getattr(np.fft, name)
    return lambda x, n=None, dim=-1, norm=None: transform(x, n, dim, norm)


def _fftn(name: str, default: Sequence[int] | None) -> Counterpart:
    transform = getattr(np.fft, name)

    def counterpart(x: Any, s: Any = None, dim: Any = default, norm: Any = None) -> Any:
        s = (s,) if isinstance(s, int | np.integer) else s
        dim = (dim,) if isinstance(dim, int | np.integer) else dim
        if dim is None and s is not None:
            dim = tuple(range(-len(s), 0))
        return transform(x, s, dim, norm)

    return counterpart


COUNTERPARTS = {f"fft.{name}": _fft(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")}
COUNTERPARTS |= {f"fft.{name}": _fftn(name, (-2, -1)) for name in ("fft2", "ifft2", "rfft2", "irfft2")}
COUNTERPARTS |= {f"fft.{name}": _fftn(name, None) for name in ("fftn", "ifftn", "rfftn", "irfftn")}
