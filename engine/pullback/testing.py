"""Checks of derivatives, for our own rules and for yours.

>>> pb.testing.check_grads(lambda x, w: np.tanh(w @ x), (np.ones(3), np.ones((2, 3))))  # silent, for it is right

What no such check can see, and what to do about it:

* A kink at the point itself: relu at 0 has two one-sided derivatives, and any rule is wrong. Move the point.
* Saturation: where the true derivative is zero to rounding (tanh at 40), a rule that gives zero everywhere passes. Add
  points where the function moves.
* Coarse spacing: a difference needs values whose last digits resolve its step. Scale arguments to about 1.
* Small parts: a wrong derivative that is a millionth of the others is within tolerance. Check the parts apart.
* Branches not taken: control flow is checked along the path of these arguments only.
* Randomness, mutation and hidden state of the function: differences of a function that changes mean nothing.
* One random direction per mode: an error orthogonal to it passes, with probability zero for continuous errors, and less
  surely for a single wrong element of a very large array. Check small arrays.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback import trees
from pullback.core.primitive import TracedValue
from pullback.core.types import dtype_of, is_array_like
from pullback.dataclass import dataclass
from pullback.transforms.linearization import jvp, vjp

Leaves = list[Any]

_STEP = 1e-5  # of central differences in double precision: truncation about step squared, rounding about 1e-16 / step
_MODES = {"fwd": "forward", "rev": "reverse"}


@dataclass(frozen=True, slots=True)
class _Tolerance:
    """Tolerances, relative to the sum of the absolute terms that a number is made of."""

    differences: float  # a derivative against differences
    modes: float  # forward against reverse mode, which differ by rounding alone


#: By the coarsest dtype that takes part, in bytes of a real number. Differences are always taken in double precision.
_TOLERANCES = {2: _Tolerance(5e-2, 2e-2), 4: _Tolerance(1e-3, 1e-4), 8: _Tolerance(1e-6, 1e-9)}


def check_grads(
    function: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
) -> None:
    """Raise AssertionError if derivatives of a function at some arguments disagree with each other or with differences.

    Forward mode is compared with central differences, reverse mode with forward mode (with differences where "fwd" is not
    among the modes), each along one random direction; then the same for the derivative in each mode, up to `order`: all
    mixes of modes are tried. Cotangents must have shape and dtype of their arguments, values must be those of the plain
    call, and the arguments must stay as they are.

    Arguments and results may be trees; their leaves of dtype float and complex are moved, others held. `rtol` and `atol`
    bound what is relative to the size of the terms and what is not; the defaults follow from the coarsest dtype.
    """
    unknown = [mode for mode in modes if mode not in _MODES]
    if unknown or not modes:
        raise ValueError(f'check_grads: modes are "fwd" and "rev", not {tuple(modes)!r}')
    if order < 1:
        raise ValueError(f"check_grads: order={order} checks nothing; the first derivative is order=1")
    if not isinstance(args, tuple | list):
        raise TypeError(f"check_grads: args is the tuple of all arguments, not one {type(args).__name__}; write (x,)")
    before = [np.array(leaf) if issubclass(type(leaf), np.ndarray) else leaf for leaf in trees.flatten(tuple(args))[0]]
    problem = _problem(function, tuple(args), rtol, atol)
    _check(problem, order, modes, np.random.default_rng(seed))
    for old, leaf, name in zip(before, trees.flatten(tuple(args))[0], _names(tuple(args)), strict=True):
        if issubclass(type(leaf), np.ndarray) and old.tobytes() != leaf.tobytes():
            raise AssertionError(f"check_grads: {name} was written to; a function to differentiate must not modify it")


@dataclass(frozen=True, slots=True)
class _Problem:
    """A function from the leaves that move to the leaves of the result that move, and where it is checked."""

    function: Callable[[Leaves], Leaves]
    points: Leaves
    names: tuple[str, ...]
    label: str
    rtol: float
    atol: float
    modes_rtol: float

    def value(self) -> Leaves:
        """The plain value."""
        return self.function(self.points)

    def forward(self, direction: Leaves) -> tuple[Leaves, Leaves]:
        """Value and tangent."""
        value, tangent = jvp(self.function, (self.points,), (direction,))
        return value, tangent

    def reverse(self, weights: Leaves) -> Leaves:
        """Cotangents of the points."""
        cotangents: Leaves = vjp(self.function, self.points)[1](weights)[0]
        return cotangents

    def difference(self, direction: Leaves) -> Leaves:
        """The tangent by a central difference, in double precision."""
        points, moves = list(map(_double, self.points)), list(map(_double, direction))
        ahead, behind = (
            self.function([x + sign * _STEP * dx for x, dx in zip(points, moves, strict=True)]) for sign in (1, -1)
        )
        return [(np.asarray(a) - np.asarray(b)) / (2 * _STEP) for a, b in zip(ahead, behind, strict=True)]

    def derivative(self, mode: str, rng: np.random.Generator) -> "_Problem":
        """The derivative along a direction, or of the value in a direction, as the next function to check."""
        label = f"{_MODES[mode]} mode of {self.label}"
        if mode == "fwd":
            direction = [_random(rng, x) for x in self.points]
            return replace(self, label=label, function=lambda xs: jvp(self.function, (xs,), (direction,))[1])
        weights = [_random(rng, y) for y in self.value()]
        return replace(self, label=label, function=lambda xs: vjp(self.function, xs)[1](weights)[0])


def _problem(function: Callable[..., Any], args: tuple[Any, ...], rtol: float | None, atol: float | None) -> _Problem:
    leaves, rebuild = trees.flatten(args)
    moving = [place for place, leaf in enumerate(leaves) if _moves(leaf)]
    if not moving:
        raise ValueError("check_grads: no argument is a floating-point number or array; there is nothing to move")

    def on_leaves(xs: Leaves) -> Leaves:
        moved = dict(zip(moving, xs, strict=True))
        result = function(*rebuild(iter([moved.get(place, leaf) for place, leaf in enumerate(leaves)])))
        return [leaf for leaf in trees.flatten(result)[0] if _moves(leaf)]

    points = [leaves[place] for place in moving]
    label = getattr(function, "__name__", "the function")
    results = on_leaves(points)
    if not results:
        raise ValueError(f"check_grads: {label} returns nothing that can be differentiated")
    width = min(_width(leaf) for leaf in [*points, *results])
    tolerance = _TOLERANCES[min(width, 8)]
    relative = tolerance.differences if rtol is None else rtol
    return _Problem(
        on_leaves,
        points,
        tuple(_names(args)[place] for place in moving),
        label,
        relative,
        relative * 1e-2 if atol is None else atol,
        tolerance.modes,
    )


def _check(problem: _Problem, order: int, modes: Sequence[str], rng: np.random.Generator) -> None:
    values = problem.value()
    direction = [_random(rng, x) for x in problem.points]
    weights = [_random(rng, y) for y in values]
    if "fwd" in modes:
        _check_forward(problem, values, direction, weights)
    if "rev" in modes:
        _check_reverse(problem, values, direction, weights, against="fwd" if "fwd" in modes else "differences")
    if order > 1:
        for mode in modes:
            _check(problem.derivative(mode, rng), order - 1, modes, rng)


def _check_forward(problem: _Problem, values: Leaves, direction: Leaves, weights: Leaves) -> None:
    traced, _ = problem.forward(direction)
    _require_value(problem, values, traced, "forward")

    def gap(moves: Leaves) -> "_Gap":
        _, tangent = problem.forward(moves)
        return _gap(problem, ("forward", _pairing(weights, tangent)), moves, weights, values)

    _require_small(problem, gap, direction)


def _check_reverse(problem: _Problem, values: Leaves, direction: Leaves, weights: Leaves, *, against: str) -> None:
    cotangents = problem.reverse(weights)
    for name, x, x_bar in zip(problem.names, problem.points, cotangents, strict=True):
        expected, found = (np.shape(x), dtype_of(x)), (np.shape(x_bar), dtype_of(x_bar))
        if expected != found:
            raise AssertionError(
                f"check_grads: reverse mode of {problem.label} gives a cotangent of shape {found[0]} and dtype {found[1]} "
                f"for {name}, which has shape {expected[0]} and dtype {expected[1]}"
            )

    def gap(moves: Leaves) -> "_Gap":
        reverse = _pairing(cotangents, moves)
        if against == "differences":
            return _gap(problem, ("reverse", reverse), moves, weights, values)
        forward = _pairing(weights, problem.forward(moves)[1])
        size = _size(cotangents, moves) + _size(weights, problem.forward(moves)[1])
        return _Gap("reverse", reverse, "forward mode gives", forward, problem.modes_rtol * (size + 1))

    _require_small(problem, gap, direction)


@dataclass(frozen=True, slots=True)
class _Gap:
    """Two numbers that should be one."""

    mode: str
    found: float
    other: str
    expected: float
    allowed: float

    @property
    def is_small(self) -> bool:
        """True if they are close; a number that is not finite is close to nothing."""
        return abs(self.found - self.expected) <= self.allowed


def _gap(problem: _Problem, derivative: tuple[str, float], moves: Leaves, weights: Leaves, values: Leaves) -> _Gap:
    """A derivative against differences: the rounding of the values, divided by the step, cannot be seen through."""
    difference = problem.difference(moves)
    rounding = 8 * np.finfo(float).eps / _STEP * _size(weights, values)
    allowed = problem.rtol * _size(weights, difference) + problem.atol + rounding
    return _Gap(*derivative, "differences give", _pairing(weights, difference), allowed)


def _require_small(problem: _Problem, gap: Callable[[Leaves], _Gap], direction: Leaves) -> None:
    """Raise if the gap along a direction is too large, naming the argument it comes from."""
    joint = gap(direction)
    if joint.is_small:
        return
    found, where = joint, "all arguments together"
    for place, name in enumerate(problem.names):
        alone = gap([dx if other == place else _zero(dx) for other, dx in enumerate(direction)])
        if not alone.is_small:
            found, where = alone, name
            break
    raise AssertionError(
        f"check_grads: {found.mode} mode of {problem.label}, by {where}, gives {found.found!r}, "
        f"{found.other} {found.expected!r}: apart by {abs(found.found - found.expected):.2g}, allowed {found.allowed:.2g}"
    )


def _require_value(problem: _Problem, plain: Leaves, traced: Leaves, mode: str) -> None:
    for position, (y, under_trace) in enumerate(zip(plain, traced, strict=True)):
        if not np.allclose(y, under_trace, rtol=problem.modes_rtol, atol=problem.modes_rtol, equal_nan=True):
            raise AssertionError(f"check_grads: result {position} of {problem.label} is another value in {mode} mode")


# --- vectors: leaves that move --------------------------------------------------------------------------------------
def _moves(leaf: Any) -> bool:
    return (isinstance(leaf, TracedValue) or is_array_like(leaf)) and dtype_of(leaf).kind in "fc"


def _width(leaf: Any) -> int:
    dtype = dtype_of(leaf)
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)


def _random(rng: np.random.Generator, like: Any) -> Any:
    """A standard normal vector in the shape and dtype of another."""
    drawn = rng.normal(size=np.shape(like))
    dtype = dtype_of(like)
    return np.asarray(drawn + 1j * rng.normal(size=np.shape(like)) if dtype.kind == "c" else drawn, dtype)[()]


def _zero(leaf: Any) -> Any:
    return np.zeros(np.shape(leaf), dtype_of(leaf))[()]


def _double(leaf: Any) -> Any:
    """A leaf in at least double precision."""
    return np.asarray(leaf, np.promote_types(dtype_of(leaf), np.float64))[()]


def _pairing(cotangents: Leaves, tangents: Leaves) -> float:
    """The real number that a cotangent makes of a tangent: the real part of the sum of products, nothing conjugated."""
    return float(sum(np.sum(np.real(_double(c) * _double(t))) for c, t in zip(cotangents, tangents, strict=True)))


def _size(cotangents: Leaves, tangents: Leaves) -> float:
    """Sum of the absolute values of the terms of a pairing."""
    return float(sum(np.sum(np.abs(_double(c) * _double(t))) for c, t in zip(cotangents, tangents, strict=True)))


def _names(args: tuple[Any, ...]) -> list[str]:
    """The name of every leaf of the arguments: "argument 1['w'][0]"."""
    return [f"argument {number}{path}" for number, arg in enumerate(args) for path in trees.paths(arg)]
