"""What a nest costs: rough figures that decide how far its body is repeated instead of looped over."""

from pullback.backends.native.elementary import scalars
from pullback.backends.native.kernels.nest import Nest


def cost_of_a_turn(nest: Nest) -> int:
    """Cycles, about, for one vector of every value."""
    steps = sum(scalars.cost(step.primitive, step.dtype) for step in nest.steps)
    return 1 + len(nest.reads) + len(nest.writes) + len(nest.reductions) + steps
