"""Derivatives that a rule does not have: refused by name when somebody asks for one, never taken as zero."""

from collections.abc import Callable
from typing import Any, NoReturn

from pullback.errors import NoRuleError


def undefined(function: str, argument: str) -> Callable[..., NoReturn]:
    """A map that says which derivative is missing."""

    def refuse(*_: Any) -> NoReturn:
        raise NoRuleError(
            f"{function} has no rule for its derivative by {argument}; hold {argument} constant (pb.stop_gradient)"
        )

    return refuse
