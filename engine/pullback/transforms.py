"""grad and value_and_grad, in the tier in force."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from pullback import trees
from pullback.compiling import Plan
from pullback.gradients import Gradient, Wrt
from pullback.primitive import Traced
from pullback.tiers import current_tier


class TieredGradient(Gradient):
    """A gradient that runs on the tape in the `unfused` tier, and keeps a plan for each other one."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run in the tier in force; under an outer transformation always on the tape."""
        tier = current_tier()
        if tier == "unfused" or any(isinstance(leaf, Traced) for leaf in trees.flatten((args, keywords))[0]):
            return self.eagerly(self.positional(args, keywords))
        plan = self._plans.get(tier)
        if plan is None:
            plan = self._plans[tier] = Plan(self, tier)
        return plan(*args, **keywords)

    def __getstate__(self) -> dict[str, Any]:
        """Without the plans: a copy makes its own."""
        return {name: value for name, value in self.__dict__.items() if name != "_plans"}

    @cached_property
    def _plans(self) -> dict[str, Plan]:
        return {}


def grad(function: Callable[..., Any], wrt: Wrt = 0) -> Gradient:
    """Gradient of a function that returns one number, by one argument (position or name) or a tuple of them."""
    return TieredGradient(function, wrt, with_value=False)


def value_and_grad(function: Callable[..., Any], wrt: Wrt = 0) -> Gradient:
    """Gradient and value from one run.

    `value, gradient = value_and_grad(f)(x)`
    """
    return TieredGradient(function, wrt, with_value=True)
