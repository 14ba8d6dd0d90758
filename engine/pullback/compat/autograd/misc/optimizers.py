"""Gradient descent with momentum, RMSprop and Adam, on arrays and on nested containers of them.

`grad(x, i)` is given the iterate and the number of the iteration; `callback(x, i, g)` is called for each.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from pullback.compat.autograd.misc.flatten import flatten

Optimizer = Callable[..., Any]


def unflatten_optimizer(optimize: Optimizer) -> Optimizer:
    """Let an optimizer of flat vectors take containers."""

    @wraps(optimize)
    def optimize_tree(grad: Any, x0: Any, callback: Any = None, *args: Any, **kwargs: Any) -> Any:
        start, unflatten = flatten(x0)

        def flat_grad(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def flat_callback(x: Any, i: int, g: Any) -> None:
            if callback:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(flat_grad, start, flat_callback, *args, **kwargs))

    return optimize_tree


@unflatten_optimizer
def sgd(grad: Any, x: Any, callback: Any, num_iters: int = 200, step_size: float = 0.1, mass: float = 0.9) -> Any:
    """Gradient descent with momentum."""
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Any,
    x: Any,
    callback: Any,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Steps divided by the root of the running mean of squares."""
    mean_square = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        mean_square = gamma * mean_square + (1 - gamma) * g**2
        x = x - step_size * g / (np.sqrt(mean_square) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Any,
    x: Any,
    callback: Any,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam (arXiv:1412.6980): running means of gradient and square, corrected for their start at zero."""
    mean, mean_square = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        mean = b1 * mean + (1 - b1) * g
        mean_square = b2 * mean_square + (1 - b2) * g**2
        step = (mean / (1 - b1 ** (i + 1))) / (np.sqrt(mean_square / (1 - b2 ** (i + 1))) + eps)
        x = x - step_size * step
    return x
