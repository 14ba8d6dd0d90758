"""The cost of a nest: rough figures that decide how far its body is repeated instead of looped over."""

from pullback.backends.llvm.elementary import scalars
from pullback.backends.nests.nest import Nest


def cost_of_a_turn(nest: Nest) -> int:
    """Cycles, about, for one vector of every value."""
    return 1 + len(nest.reads) + len(nest.writes) + len(nest.reductions) + cost_of_steps(nest)


def cost_of_steps(nest: Nest) -> int:
    """The part of it that is computing."""
    return sum(scalars.cost(step.primitive, step.dtype) for step in nest.steps)


#: A body of more cycles has chains of operations that wait for each other, not loads, to be hidden.
_LONG = 32


def is_long(nest: Nest) -> bool:
    """True if one vector of all values is more than a core looks ahead."""
    return cost_of_a_turn(nest) > _LONG


#: A step of more cycles is an elementary function; a division or a root in double precision takes so many.
_CHAIN = 20


def has_chains(nest: Nest) -> bool:
    """True if a step is many operations that wait for each other."""
    return any(scalars.cost(step.primitive, step.dtype) > _CHAIN for step in nest.steps)
