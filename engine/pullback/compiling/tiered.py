"""grad and value_and_grad, in the tier in force."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from pullback import trees
from pullback.compiling.plan import Plan
from pullback.core.primitive import is_followed
from pullback.devices import carried, device_in_force
from pullback.tiers import current_tier, gradients_are_planned
from pullback.transforms.arguments import Wrt, chosen
from pullback.transforms.gradients import Gradient

#: Arguments that no transformation follows, and that need no look into.
_PLAIN = frozenset({np.ndarray, float, int, bool, complex})


class TieredGradient(Gradient):
    """A gradient that runs on the tape in the `unfused` tier, and keeps a plan for each other one."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run in the tier in force; under an outer transformation always on the tape."""
        tier = current_tier()
        if (
            not keywords
            and gradients_are_planned()
            and device_in_force() is None
            and _PLAIN.issuperset(map(type, args))
        ):
            known = self._plans.get(tier)
            if known is not None:  # the usual case: nothing to bind, nothing that could be traced
                return known(*args)
        args, by_keyword = self.selection.bind(args, keywords)
        on_device = carried(self.function, args, by_keyword)
        if on_device is not None:
            return on_device.back(self._in_tier(tier, on_device.args, on_device.keywords))
        return self._in_tier(tier, args, by_keyword)

    def _in_tier(self, tier: str, args: tuple[Any, ...], by_keyword: dict[str, Any]) -> Any:
        on_the_tape = not gradients_are_planned() or self.holomorphic
        if on_the_tape or any(is_followed(leaf) for leaf in trees.flatten((args, by_keyword))[0]):
            return self.eagerly(args, by_keyword)
        plan = self._plans.get(tier)
        if plan is None:
            plan = self._plans[tier] = Plan(self, tier)
        return plan(*args, **by_keyword)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the plans: a copy makes its own."""
        return {name: value for name, value in self.__dict__.items() if name != "_plans"}

    @cached_property
    def _plans(self) -> dict[str, Plan]:
        return {}


def grad(
    function: Callable[..., Any],
    wrt: Wrt | None = None,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    argnums: Wrt | None = None,
) -> Gradient:
    """Gradient of a function that returns one number, by one argument or a tuple of them.

    `wrt` (or `argnums`) is a position, a name, or a tuple of these, which gives a tuple of gradients; each is built like
    its argument: an array, a number, or a tree of them. With `has_aux` the function returns `(value, aux)`, and the result
    is `(gradient, aux)`. `holomorphic` allows complex values, of functions that have a complex derivative.

    >>> def loss(w, x):
    ...     return np.sum((w @ x) ** 2)
    >>> w, x = np.array([[1.0, 2.0]]), np.array([3.0, 1.0])
    >>> pb.grad(loss)(w, x)
    array([[30., 10.]])
    >>> dw, dx = pb.grad(loss, wrt=("w", "x"))(w, x)
    >>> dx
    array([10., 20.])
    """
    return TieredGradient(function, chosen(wrt, argnums), with_value=False, has_aux=has_aux, holomorphic=holomorphic)


def value_and_grad(
    function: Callable[..., Any],
    wrt: Wrt | None = None,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    argnums: Wrt | None = None,
) -> Gradient:
    """Value and gradient from one run: a function that returns `(value, gradient)`.

    The arguments are those of `pb.grad`; with `has_aux` the value is `(value, aux)`.

    >>> value, slope = pb.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> print(value, slope)
    5.0 [2. 4.]
    """
    return TieredGradient(function, chosen(wrt, argnums), with_value=True, has_aux=has_aux, holomorphic=holomorphic)
