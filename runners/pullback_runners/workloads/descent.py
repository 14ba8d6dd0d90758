"""Gradient descent with a step that grows and shrinks, as GradBench's `particle` and `saddle` search with it.

The step begins at 1e-5, doubles after ten successes and halves after a failure; the search ends where the gradient or the
next move is at most 1e-5. How many steps that takes depends on the values, so there are two loops: one that runs until the
search ends (`until_done`), which forward mode goes through, and one of a known number of steps that stand still once the
search has ended (`bounded`), which reverse mode goes through. What a bound cut short is NaN, never an unfinished number.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb

SMALLEST_MOVE = 1e-5
FIRST_STEP = 1e-5
SUCCESSES = 10

Loop = Callable[[Callable[[Any], Any], Any], Any]
"""`loop(body, state)`: the state, a tuple whose last part says whether it is done, after the body made it so."""


def until_done(body: Callable[[Any], Any], state: Any) -> Any:
    """Run the body until the state is done."""
    return pb.while_loop(lambda state: np.logical_not(state[-1]), body, state)


def bounded(limit: int) -> Loop:
    """Run the body `limit` times; a body must leave alone a state that is done."""

    def loop(body: Callable[[Any], Any], state: Any) -> Any:
        return pb.scan(lambda state, _: (body(state), None), state, None, length=limit)[0]

    return loop


def loop_for(outer: str, limit: int) -> Loop:
    """The loop that a derivative of mode `outer` (f or r) goes through."""
    return until_done if outer == "f" else bounded(limit)


def differentiated(function: Callable[[Any], Any], mode: str) -> Callable[[Any], tuple[Any, Any]]:
    """Value and gradient of a function of a short vector, by forward (f) or reverse mode (r)."""
    if mode == "r":
        return pb.value_and_grad(function)

    def forward(x: Any) -> tuple[Any, Any]:
        pushed = [pb.jvp(function, [x], [direction]) for direction in np.eye(len(x), dtype=x.dtype)]
        return pushed[0][0], np.stack([dy for _, dy in pushed])

    return forward


def norm(x: Any) -> Any:
    """Length of a vector, to compare with; no derivative is taken of it."""
    x = pb.stop_gradient(x)
    return np.sqrt(np.sum(x * x))


def minimum(value_and_gradient: Callable[[Any], tuple[Any, Any]], start: Any, loop: Loop) -> tuple[Any, Any]:
    """The minimum found from `start`, and whether all values on the way were finite."""

    def step(state: Any) -> Any:
        x, value, gradient, successes, size, finite, done = state
        flat = np.logical_not(norm(gradient) > SMALLEST_MOVE)
        grows = np.logical_and(successes == SUCCESSES, np.logical_not(flat))
        there = x - size * gradient
        close = np.logical_not(norm(x - there) > SMALLEST_MOVE)
        ends = np.logical_or(done, np.logical_or(flat, np.logical_and(close, np.logical_not(grows))))
        tries = np.logical_not(np.logical_or(ends, grows))
        value_there, gradient_there = value_and_gradient(there)
        better = np.logical_and(tries, pb.stop_gradient(value_there) < pb.stop_gradient(value))
        worse = np.logical_and(tries, np.logical_not(better))
        return (
            np.where(better, there, x),
            np.where(better, value_there, value),
            np.where(better, gradient_there, gradient),
            np.where(better, successes + 1, np.where(np.logical_or(grows, worse), 0 * successes, successes)),
            np.where(grows, 2 * size, np.where(worse, size / 2, size)),
            np.logical_and(finite, np.logical_or(np.logical_not(tries), np.isfinite(pb.stop_gradient(value_there)))),
            ends,
        )

    value, gradient = value_and_gradient(start)
    number = start.dtype.type
    first = (
        start,
        value,
        gradient,
        number(0),
        number(FIRST_STEP),
        np.isfinite(pb.stop_gradient(value)),
        np.bool_(False),
    )
    x, *_, finite, done = loop(step, first)
    return x, np.logical_and(finite, done)
