"""Checks for gradients, for our own rules and for yours.

What they cannot see: a kink at the point itself (relu at 0: move the point), saturation (a derivative that is zero to
rounding passes as zero), and values so large that the step falls below their spacing.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.linearizing import jvp, vjp


def check_grads(function: Callable[..., Any], args: Sequence[Any], *, rtol: float = 1e-6, seed: int = 0) -> None:
    """Raise if forward mode, reverse mode and central differences disagree at `args`, in random directions.

    The arguments are float64 arrays or numbers. Reverse against forward is exact to rounding:
    <y_bar, J dx> == <J^T y_bar, dx>; forward against differences has an error of the order of the step squared.
    """
    rng = np.random.default_rng(seed)
    primals = [np.asarray(argument, dtype=np.float64) for argument in args]
    directions = [rng.normal(size=primal.shape) for primal in primals]
    value, tangent = jvp(function, primals, directions)
    y_bar = rng.normal(size=np.shape(value))
    cotangents = vjp(function, *primals)[1](y_bar)
    forward = float(np.sum(y_bar * tangent))
    reverse = float(sum(np.sum(cotangent * dx) for cotangent, dx in zip(cotangents, directions, strict=True)))
    _require_close("reverse", reverse, "forward", forward, rtol=1e-10)
    step = 1e-5
    ahead = function(*(primal + step * dx for primal, dx in zip(primals, directions, strict=True)))
    behind = function(*(primal - step * dx for primal, dx in zip(primals, directions, strict=True)))
    differences = float(np.sum(y_bar * (ahead - behind))) / (2 * step)
    _require_close("forward", forward, "differences", differences, rtol=rtol)


def _require_close(name: str, value: float, other_name: str, other: float, *, rtol: float) -> None:
    scale = max(abs(value), abs(other), 1.0)
    if not abs(value - other) <= rtol * scale:
        raise AssertionError(f"{name} mode gives {value!r}, {other_name} give {other!r}: apart by more than {rtol:g}")
