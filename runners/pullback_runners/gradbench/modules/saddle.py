"""saddle: a saddle point by a search in a search, with nested derivatives in four pairs of modes."""

from functools import partial

from pullback_runners.gradbench.bounded_searches import search
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, PreparedFunction, array, listed
from pullback_runners.workloads.saddle import LIMIT, MODES, saddle_point

MODULE = Module("saddle")


def _prepare(mode: str, engine: Engine, given: Input) -> PreparedFunction:
    start = array(given, "start", 2)
    call = search(engine, f"saddle.{mode}", lambda limit: saddle_point(mode, limit), start, LIMIT)
    return PreparedFunction(call, listed)


for _mode in MODES:
    MODULE.function(_mode)(partial(_prepare, _mode))
