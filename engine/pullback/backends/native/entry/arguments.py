"""The steps that fetch and check the arguments of a call: arrays, numbers, and containers of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback import trees
from pullback.backends.native.entry.forms import NotNativeError
from pullback.backends.native.entry.frames import Check, Fetch, Step

_NUMBERS = {float: Check.FLOAT, int: Check.INT, bool: Check.BOOL}
_SCALARS = frozenset({np.float64, np.float32, np.int64, np.int32, np.bool_})


def argument_steps(args: tuple[Any, ...]) -> list[Step]:
    """Steps for calls with arguments like these; the leaves are the first inputs of the program, in their order."""
    leaves, rebuild = trees.flatten(args)
    numbered = rebuild(iter(range(len(leaves))))
    steps: list[Step] = []
    waiting: list[tuple[Any, Any, Fetch, Any, int]] = [
        (numbers, argument, Fetch.ARGUMENT, place, 0)
        for place, (numbers, argument) in enumerate(zip(numbered, args, strict=True))
    ]
    for numbers, value, fetch, what, parent in waiting:  # breadth first: a dict is gone through without interruption
        steps.append(_step(numbers, value, fetch, what, parent))
        waiting.extend(_parts(numbers, value, len(steps) - 1))
    return steps


def leaf_check(leaf: Any) -> tuple[Check, type]:
    """How a leaf like this is checked."""
    kind = type(leaf)
    if kind is np.ndarray:
        return Check.ARRAY, kind
    if kind in _NUMBERS:
        return _NUMBERS[kind], kind
    if kind in _SCALARS:
        return Check.SCALAR, kind
    raise NotNativeError(f"an argument is a {kind.__name__}")


def _step(numbers: Any, value: Any, fetch: Fetch, what: Any, parent: int) -> Step:
    if value is None:
        return Step(fetch, what, Check.IDENTITY, None, parent)
    if type(value) in _CONTAINERS:
        return Step(fetch, what, _CONTAINERS[type(value)], type(value), parent, length=len(value))
    if not isinstance(numbers, int):
        raise NotNativeError(f"an argument is a {type(value).__name__}")
    check, kind = leaf_check(value)
    return Step(fetch, what, check, kind, parent, numbers)


_CONTAINERS: dict[type, Check] = {tuple: Check.TUPLE, list: Check.LIST, dict: Check.DICT}


def _parts(numbers: Any, value: Any, parent: int) -> Sequence[tuple[Any, Any, Fetch, Any, int]]:
    if type(value) is dict:
        fetches = [Fetch.FIRST_DICT_ITEM, *[Fetch.NEXT_DICT_ITEM] * len(value)]
        return [(numbers[key], value[key], fetch, key, parent) for key, fetch in zip(value, fetches, strict=False)]
    if type(value) in _CONTAINERS:
        fetch = Fetch.TUPLE_ITEM if type(value) is tuple else Fetch.LIST_ITEM
        return [
            (part, item, fetch, place, parent) for place, (part, item) in enumerate(zip(numbers, value, strict=True))
        ]
    return ()
