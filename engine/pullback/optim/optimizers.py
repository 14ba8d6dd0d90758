"""Optimizers that take one step for one gradient."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pullback.dataclass import dataclass
from pullback.errors import PullbackError
from pullback.trees import tree_map


@dataclass(frozen=True)
class SGD:
    """Gradient descent, optionally with momentum.

        velocity = momentum * velocity + gradient
        params = params - learning_rate * velocity

    With `nesterov` the step is taken along `gradient + momentum * velocity`. The state is the velocity, None without momentum.

    >>> optimizer = pb.optim.SGD(learning_rate=0.25)
    >>> x, state = np.array([4.0]), None
    >>> for _ in range(2):
    ...     x, state = optimizer.step(x, pb.grad(lambda x: np.sum(x**2))(x), state)
    >>> x
    array([1.])
    """

    learning_rate: float
    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        _require("SGD", "learning_rate", self.learning_rate, lambda rate: rate >= 0, "0 or more")
        _require("SGD", "momentum", self.momentum, lambda share: 0 <= share < 1, "from 0 to less than 1")

    def init(self, params: Any) -> Any:
        """The state before the first step."""
        return tree_map(_zeros_like, params) if self.momentum else None

    def step(self, params: Any, gradient: Any, state: Any) -> tuple[Any, Any]:
        """Parameters and state after a step."""
        direction = gradient
        if self.momentum:
            state = tree_map(lambda v, g: self.momentum * v + g, state, gradient)
            direction = tree_map(lambda g, v: g + self.momentum * v, gradient, state) if self.nesterov else state
        return tree_map(lambda p, d: p - self.learning_rate * d, params, direction), state


class AdamState(NamedTuple):
    """The running means of gradients and of their squares, and how much of each is still its start at zero."""

    mean: Any
    square: Any
    mean_start: float
    square_start: float


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba, arXiv:1412.6980): steps by the ratio of running means, corrected for their start at zero.

    With `weight_decay` the parameters shrink by `learning_rate * weight_decay` at each step, apart from the gradient
    (AdamW, arXiv:1711.05101).

    >>> optimizer = pb.optim.Adam(learning_rate=0.1)
    >>> params = {"w": np.array([1.0, -2.0]), "b": 0.5}
    >>> state = optimizer.init(params)
    >>> params, state = optimizer.step(params, {"w": np.array([3.0, -1.0]), "b": 0.0}, state)
    >>> params["w"].round(3), params["b"]
    (array([ 0.9, -1.9]), 0.5)
    """

    learning_rate: float = 1e-3
    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _require("Adam", "learning_rate", self.learning_rate, lambda rate: rate >= 0, "0 or more")
        _require("Adam", "b1", self.b1, lambda share: 0 <= share < 1, "from 0 to less than 1")
        _require("Adam", "b2", self.b2, lambda share: 0 <= share < 1, "from 0 to less than 1")
        _require("Adam", "weight_decay", self.weight_decay, lambda rate: rate >= 0, "0 or more")

    def init(self, params: Any) -> AdamState:
        """The state before the first step."""
        return AdamState(tree_map(_zeros_like, params), tree_map(_zeros_like, params), 1.0, 1.0)

    def step(self, params: Any, gradient: Any, state: AdamState) -> tuple[Any, AdamState]:
        """Parameters and state after a step."""
        mean_start, square_start = state.mean_start * self.b1, state.square_start * self.b2  # b1**t and b2**t
        mean = tree_map(lambda m, g: self.b1 * m + (1 - self.b1) * g, state.mean, gradient)
        square = tree_map(lambda s, g: self.b2 * s + (1 - self.b2) * g * g, state.square, gradient)

        def moved(p: Any, m: Any, s: Any) -> Any:
            step = (m / (1 - mean_start)) / ((s / (1 - square_start)) ** 0.5 + self.eps)
            return p - self.learning_rate * (step + self.weight_decay * p if self.weight_decay else step)

        return tree_map(moved, params, mean, square), AdamState(mean, square, mean_start, square_start)


def _zeros_like(leaf: Any) -> Any:
    return 0.0 if isinstance(leaf, float) else np.zeros_like(leaf)


def _require(optimizer: str, name: str, value: float, holds: Callable[[float], bool], wanted: str) -> None:
    try:
        is_right = holds(value)
    except PullbackError:  # of a traced value
        raise
    except TypeError:  # no number
        is_right = False
    if not is_right:
        raise ValueError(f"{optimizer}: {name}={value!r} is not {wanted}")
