"""SciPy's minimizers on functions of trees."""

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from pullback import trees
from pullback.compiling.plan import compile  # noqa: A004 (the public name)
from pullback.compiling.tiered import value_and_grad
from pullback.dataclass import dataclass

#: Methods of `scipy.optimize.minimize` that need a value and a gradient and nothing else.
METHODS = ("L-BFGS-B", "BFGS", "CG", "TNC", "SLSQP")


@dataclass(frozen=True)
class Minimum:
    """The result of a minimizer."""

    params: Any
    """Nested like those it began with."""
    value: float
    converged: bool
    message: str
    """The reason why it stopped, in SciPy's words."""
    iterations: int
    evaluations: int


def minimize(
    loss: Callable[..., Any],
    params: Any,
    *args: Any,
    method: str = "L-BFGS-B",
    tolerance: float | None = None,
    iterations: int = 1000,
    callback: Callable[[Any], None] | None = None,
) -> Minimum:
    """Minimize `loss(params, *args)`, starting from `params`, by a method of `scipy.optimize.minimize`.

    The gradient is compiled, unless a tier is in force. SciPy computes in double precision; parameters come back in their own
    dtypes. `callback` is called with the parameters after each iteration. `tolerance` is SciPy's `tol`.

    >>> rosenbrock = lambda p: (1 - p["x"]) ** 2 + 100 * (p["y"] - p["x"] ** 2) ** 2
    >>> found = pb.optim.minimize(rosenbrock, {"x": -1.0, "y": 2.0})
    >>> found.converged, round(found.params["x"], 3), round(found.params["y"], 3)
    (True, 1.0, 1.0)
    """
    if method not in METHODS:
        raise ValueError(f"minimize: method={method!r} is none of {', '.join(METHODS)}")
    from scipy.optimize import minimize as scipy_minimize  # noqa: PLC0415 - 0.1 s that only a minimization pays

    leaves, rebuild = trees.flatten(params)
    shapes, dtypes = [np.shape(leaf) for leaf in leaves], [np.asarray(leaf).dtype for leaf in leaves]
    for path, dtype in zip(trees.paths(params), dtypes, strict=True):
        if dtype.kind != "f":
            raise TypeError(
                f"minimize: params{path} has dtype {dtype}; give floating-point numbers, and pass constants by args"
            )
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])

    def unpacked(vector: Any) -> Any:
        parts = [
            vector[start:end].reshape(shape).astype(dtype) if shape else dtype.type(vector[start]).item()
            if isinstance(leaf, float) else dtype.type(vector[start])
            for leaf, start, end, shape, dtype in zip(leaves, ends, ends[1:], shapes, dtypes, strict=False)
        ]  # fmt: skip
        return rebuild(trees.ReplacementLeaves(parts))

    plan = compile(value_and_grad(loss))

    def evaluated(vector: Any) -> tuple[float, Any]:
        value, gradient = plan(unpacked(vector), *args)
        return float(value), np.concatenate([np.ravel(np.asarray(leaf, "f8")) for leaf in trees.flatten(gradient)[0]])

    found = scipy_minimize(
        evaluated,
        np.concatenate([np.ravel(np.asarray(leaf, "f8")) for leaf in leaves]),
        jac=True,
        method=method,
        tol=tolerance,
        callback=None if callback is None else lambda x: callback(unpacked(np.asarray(x))),
        options={"maxiter": iterations} if method != "TNC" else {"maxfun": iterations},
    )
    value = float(found.fun)
    converged, message = bool(found.success), str(found.message)
    if not isfinite(value):  # SciPy's methods stop at NaN as at a minimum
        converged, message = False, f"the loss is {value} at these parameters; SciPy: {message}"
    return Minimum(unpacked(found.x), value, converged, message, int(found.nit), int(found.nfev))
