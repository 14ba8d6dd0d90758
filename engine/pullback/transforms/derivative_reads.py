"""Operands whose values a derivative reads, found out from the rule instead of declared beside it.

Linear    none: a transpose looks at shapes
Bilinear  the other one of each that is needed
Scalar    those that the maps which are needed mention
others    all
"""

import dis
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from inspect import CO_VARARGS
from types import FunctionType
from typing import Any

from pullback.core.kinds import Bilinear, Linear, Scalar
from pullback.core.primitive import Effect, Primitive


@cache
def reads_nothing(primitive: Primitive) -> bool:
    """True if no derivative by any operand reads the values of one."""
    if isinstance(primitive, Scalar):
        return not any(operands_read(primitive, (True,) * len(primitive.maps)))
    return isinstance(primitive, Linear)


@lru_cache(maxsize=4096)
def operands_read(primitive: Primitive, needed: tuple[bool, ...]) -> Sequence[bool]:
    """True if the values of each operand are read where these cotangents are needed."""
    count = len(needed)
    if isinstance(primitive, Linear):
        return [False] * count
    if isinstance(primitive, Bilinear):
        return [needed[1], needed[0]]
    if isinstance(primitive, Scalar):
        reading = [_parameters_read(map_) for map_, need in zip(primitive.maps, needed, strict=True) if need and map_]
        return [any(places is None or 1 + place in places for places in reading) for place in range(count)]
    if primitive.effect is Effect.OVERWRITES:
        return [*([True] * (count - 1)), False]  # the last one is what the engine kept
    return [True] * count


@cache
def _parameters_read(function: Callable[..., Any]) -> frozenset[int] | None:
    """Positions of the parameters that a function mentions; None where its code does not tell."""
    if not isinstance(function, FunctionType) or function.__code__.co_flags & CO_VARARGS:
        return None
    code = function.__code__
    mentioned: set[str] = set(code.co_cellvars)  # what an inner function may mention
    for step in dis.get_instructions(code):
        if "LOAD_FAST" in step.opname:  # of several kinds, some of which load two at once
            mentioned.update(step.argval if isinstance(step.argval, tuple) else (step.argval,))
    return frozenset(place for place, name in enumerate(code.co_varnames[: code.co_argcount]) if name in mentioned)
