"""Execution of a module's functions: in one tier, each as a plan that is kept while its sizes are asked for."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import pullback as pb
from pullback.backends.native.availability import why_not
from pullback_runners.errors import UsageError

KEPT = 4
"""Plans that are kept: value and derivative of two sizes. Their memory belongs to them, so not many."""


class Engine:
    """Our engine in one tier; by default in the fastest that runs here."""

    def __init__(self, tier: str | None = None) -> None:
        missing = why_not()
        if tier is not None and tier not in pb.TIERS:
            raise UsageError(f"no tier {tier!r}; give one of {', '.join(pb.TIERS)}")
        if tier == "native" and missing is not None:
            raise UsageError(f"tier 'native' does not run here: {missing} Give --tier stateful")
        self.tier = tier or ("native" if missing is None else "stateful")
        self._plans: OrderedDict[Hashable, Callable[..., Any]] = OrderedDict()

    def plan(self, key: Hashable, make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """The function that `make` gives, compiled for the tier; the same one for the same key."""
        if key not in self._plans:
            function = make()
            self._plans[key] = function if self.tier == "unfused" else pb.compile(function, tier=self.tier)
        self._plans.move_to_end(key)
        while len(self._plans) > KEPT:
            self._plans.popitem(last=False)
        return self._plans[key]
