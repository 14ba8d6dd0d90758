"""Derivatives that a rule does not have: refused by name when one is needed, never taken as zero."""

from typing import Any, NoReturn

from pullback.dataclass import dataclass
from pullback.errors import NoRuleError


@dataclass(frozen=True, slots=True)
class UndefinedDerivative:
    """The map of an operand by which a function has no rule for its derivative."""

    function: str
    argument: str

    def __call__(self, *_: Any) -> NoReturn:
        """Say which derivative is missing."""
        raise NoRuleError(
            f"{self.function} has no rule for its derivative by {self.argument}; "
            f"hold {self.argument} constant (pb.stop_gradient)"
        )
