"""A row of the table: one piece of work, done in every tier, in the hand-written NumPy form, and by peers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.turns import Call

import pullback as pb

BASELINE = "unfused"
BY_HAND = "numpy"


@dataclass(frozen=True, slots=True)
class Row:
    """A requirement, and the ways of doing its work by name; one of them is the baseline."""

    name: str
    requirement: str
    ways: Callable[[], Mapping[str, Call]]


@dataclass(frozen=True, slots=True)
class Growth:
    """A requirement on how the time grows: the same work at two sizes."""

    name: str
    requirement: str
    sizes: tuple[int, int]
    ways: Callable[[int], Mapping[str, Call]]


def in_tiers(gradient: Callable[..., Any], *args: Any) -> dict[str, Call]:
    """The call on the tape, and as a plan in every other tier."""

    def planned(tier: str) -> Call:
        plan = pb.compile(gradient, tier=tier)
        return lambda: plan(*args)

    return {BASELINE: lambda: gradient(*args), **{tier: planned(tier) for tier in pb.TIERS if tier != BASELINE}}


def pullbacks_in_tiers(function: Callable[..., Any], *args: Any) -> dict[str, Call]:
    """The way back alone: the function has run, the pullback is called again and again."""

    def planned(tier: str) -> Call:
        _, pullback = pb.compile(function, tier=tier).vjp(*args)
        return lambda: pullback(1.0)

    pullback = pb.vjp(function, *args)[1]
    return {BASELINE: lambda: pullback(1.0), **{tier: planned(tier) for tier in pb.TIERS if tier != BASELINE}}
