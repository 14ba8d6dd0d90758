"""Cases of rules: where a rule is to be tried, kept beside the rule and read by tests and benchmarks alike.

cases(log, positive(8))
cases(relu, away_from(0.0, 16), because="the kink at 0 has no derivative")
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from pullback.core.primitive import Primitive
from pullback.dataclass import dataclass

# Quoted: `numpy.random` is imported when it is first looked at, which takes 14 ms that only tests need.
Draw: TypeAlias = Callable[["np.random.Generator"], np.ndarray[Any, Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """Operands and parameters for one application of a rule."""

    primitive: Primitive
    draws: tuple[Draw, ...]
    params: tuple[tuple[str, Any], ...]
    because: str

    def operands(self, seed: int = 0) -> list[np.ndarray[Any, Any]]:
        """The operands, the same for the same seed."""
        rng = np.random.default_rng(seed)
        return [draw(rng) for draw in self.draws]


ALL: list[Case] = []


def cases(primitive: Primitive, *draws: Draw, because: str = "", **params: Any) -> None:
    """Register a case of a rule."""
    ALL.append(Case(primitive, draws, tuple(params.items()), because))


#: Rules that no case can show: by name, the file of tests that does.
ELSEWHERE: dict[str, str] = {}


def tested_in(file: str, *names: str) -> None:
    """Say where rules are tested that have no cases: those that write to memory, or hold for some operands only."""
    ELSEWHERE.update(dict.fromkeys(names, file))


def normal(*shape: int) -> Draw:
    """Standard normal numbers."""
    return lambda rng: rng.normal(size=shape)


def positive(*shape: int) -> Draw:
    """Numbers between 0.5 and 2.5."""
    return lambda rng: rng.uniform(0.5, 2.5, size=shape)


def away_from(kink: float, *shape: int) -> Draw:
    """Numbers at least 0.1 from a kink, on both sides of it."""

    def draw(rng: "np.random.Generator") -> np.ndarray[Any, Any]:
        distance = rng.uniform(0.1, 2.0, size=shape)
        return np.asarray(kink + distance * rng.choice([-1.0, 1.0], size=shape))

    return draw


def whole(below: int, *shape: int) -> Draw:
    """Whole numbers from 0 up to a bound: positions, which do not move."""
    return lambda rng: rng.integers(0, below, size=shape)
