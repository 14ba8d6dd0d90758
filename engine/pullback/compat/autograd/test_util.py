"""Checks of derivatives against differences, under the names and with the tolerances that programs know.

`pullback.testing.check_grads` checks more, with better messages; this one is for test-suites that exist.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from pullback.compat.autograd.core import make_jvp, make_vjp
from pullback.compat.autograd.vector_spaces import vspace
from pullback.compat.autograd.wrap_util import Function, get_name, unary_to_nary

TOL = 1e-6
RTOL = 1e-6
EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """True if two numbers agree, absolutely or relative to their sum."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def make_numerical_jvp(f: Function, x: Any) -> Function:
    """Give `jvp(v)` by a central difference."""
    x_space, y_space = vspace(x), vspace(f(x))

    def jvp(v: Any) -> Any:
        ahead = f(x_space.add(x, x_space.scalar_mul(v, EPS / 2)))
        behind = f(x_space.add(x, x_space.scalar_mul(v, -EPS / 2)))
        return y_space.scalar_mul(y_space.add(ahead, y_space.scalar_mul(behind, -1.0)), 1.0 / EPS)

    return jvp


def check_vjp(f: Function, x: Any) -> None:
    """Compare the pullback with a difference, in one random direction."""
    vjp, y = make_vjp(f, x)
    x_space, y_space = vspace(x), vspace(y)
    x_v, y_v = x_space.randn(), y_space.randn()
    pulled = x_space.covector(vjp(y_space.covector(y_v)))
    _require(vspace(pulled) == x_space, f"cotangent of {get_name(f)} is {vspace(pulled)}, its argument {x_space}")
    exact = x_space.inner_prod(x_v, pulled)
    numeric = y_space.inner_prod(y_v, make_numerical_jvp(f, x)(x_v))
    _require(
        scalar_close(numeric, exact),
        f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\nanalytic: {exact}\nnumeric:  {numeric}",
    )


def check_jvp(f: Function, x: Any) -> None:
    """Compare the tangent with a difference, in one random direction."""
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v))


def check_equivalent(x: Any, y: Any) -> None:
    """Require that two vectors live in one space and agree in one random direction."""
    space = vspace(x)
    _require(space == vspace(y), f"VSpace mismatch:\nx: {space}\ny: {vspace(y)}")
    v = space.randn()
    _require(scalar_close(space.inner_prod(x, v), space.inner_prod(y, v)), f"Value mismatch:\nx: {x}\ny: {y}")


@unary_to_nary
def check_grads(f: Function, x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Check derivatives in every mix of the modes up to an order: `check_grads(f, argnum, modes, order)(*args)`."""
    if not set(modes) <= {"fwd", "rev"}:
        raise ValueError(f'modes are "fwd" and "rev", not {modes!r}')
    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:
            _check_next(f"jvp_{get_name(f)}", lambda x, v: make_jvp(f, x)(v)[1], (x, vspace(x).randn()), modes, order)
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:
            _check_next(
                f"vjp_{get_name(f)}", lambda x, v: make_vjp(f, x)[0](v), (x, vspace(f(x)).randn()), modes, order
            )


def _check_next(name: str, derivative: Function, args: tuple[Any, Any], modes: Sequence[str], order: int) -> None:
    derivative.__name__ = name
    check_grads(derivative, (0, 1), modes=modes, order=order - 1)(*args)


def combo_check(fun: Function, *args: Any, **kwargs: Any) -> Callable[..., None]:
    """Give a check of all combinations: each argument is a list of values to try."""
    check = check_grads(fun, *args, **kwargs)

    def check_all(*choices: Any, **named_choices: Any) -> None:
        options = [[(name, value) for value in values] for name, values in named_choices.items()]
        for values in product(*choices):
            for named in product(*options):
                check(*values, **dict(named))

    return check_all


def _require(holds: bool, message: str) -> None:  # noqa: FBT001 (the claim itself)
    if not holds:
        raise AssertionError(message)
