"""particle: the charge by which a particle lands at the origin, searched with nested derivatives in four pairs of modes."""

from functools import partial

import numpy as np

from pullback_runners.gradbench.bounded_searches import search
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, PreparedFunction, array
from pullback_runners.workloads.particle import LIMIT, best_charge
from pullback_runners.workloads.saddle import MODES

MODULE = Module("particle")


def _prepare(mode: str, engine: Engine, given: Input) -> PreparedFunction:
    start = np.reshape(array(given, "w"), 1)
    call = search(engine, f"particle.{mode}", partial(best_charge, mode), start, LIMIT)
    return PreparedFunction(call, lambda found: found.item())


for _mode in MODES:
    MODULE.function(_mode)(partial(_prepare, _mode))
