"""Counts of rules run: what was computed, and what was not.

    with pb.debug.counting() as counts:
        pb.grad(loss)(x)
    counts.evaluated["matmul"], counts.cotangents["matmul"]

Counted is what the tape and the forward sweep do, in every thread; a compiled program calls no rules, its summary counts
kernels instead.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from pullback.dataclass import dataclass


@dataclass(slots=True)
class RuleCounts:
    """Counts of evaluations, pulls and pushes of each primitive, by name; a missing name counts zero.

    `cotangents` counts what the pulls computed: of a product that is pulled back, none, one or two.
    """

    evaluated: Counter[str] = field(default_factory=Counter)
    pulled: Counter[str] = field(default_factory=Counter)
    cotangents: Counter[str] = field(default_factory=Counter)
    pushed: Counter[str] = field(default_factory=Counter)


#: Those who count now; empty nearly always, and looked at once per rule.
active: list[RuleCounts] = []


@contextmanager
def counting() -> Iterator[RuleCounts]:
    """Count the rules that run inside the block."""
    counts = RuleCounts()
    active.append(counts)
    try:
        yield counts
    finally:
        active[:] = [other for other in active if other is not counts]
