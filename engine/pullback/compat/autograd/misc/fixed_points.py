"""The fixed point of an iteration, differentiated by the implicit function theorem and not through the iteration."""

from collections.abc import Callable
from typing import Any

from pullback.compat.autograd.core import make_vjp
from pullback.compat.autograd.primitives import defvjp, primitive
from pullback.compat.autograd.vector_spaces import vspace

Iteration = Callable[[Any], Callable[[Any], Any]]


@primitive
def fixed_point(f: Iteration, a: Any, x0: Any, distance: Callable[[Any, Any], Any], tol: float) -> Any:
    """Iterate `x = f(a)(x)` from x0 until two iterates are closer than tol; differentiable by a."""
    step = f(a)
    previous, x = x0, step(x0)
    while distance(x, previous) > tol:
        previous, x = x, step(x)
    return x


def _by_parameters(ans: Any, f: Iteration, a: Any, x0: Any, distance: Any, tol: float) -> Callable[[Any], Any]:
    """With x = f(a)(x): x_bar_total = g + (df/dx)^T x_bar_total, itself a fixed point, then a_bar = (df/da)^T of it."""

    def adjoint(parameters: tuple[Any, Any, Any]) -> Callable[[Any], Any]:
        a, x, g = parameters
        pull_x, _ = make_vjp(f(a), x)
        return lambda x_bar: vspace(x).add(pull_x(x_bar), g)

    def pullback(g: Any) -> Any:
        pull, _ = make_vjp(lambda both: f(both[0])(both[1]), (a, ans))
        return pull(fixed_point(adjoint, (a, ans, g), vspace(x0).zeros(), distance, tol))[0]

    return pullback


defvjp(fixed_point, None, _by_parameters, None, None, None)
