"""Results written into arrays that the caller gives."""

from itertools import combinations
from typing import Any

import numpy as np

from pullback import trees


def written_into(out: Any, result: Any) -> Any:
    """`out`, with the numbers of the result in its arrays."""
    targets, _ = trees.flatten(out)
    values, _ = trees.flatten(result)
    if trees.structure(out) != trees.structure(result):
        raise ValueError(
            f"out has another structure than the result, which has {len(values)} arrays or numbers; "
            "give a tree of the same form, with arrays of shape () for numbers"
        )
    for target, value in zip(targets, values, strict=True):
        _check(target, value)
    if any(np.may_share_memory(a, b) and np.shares_memory(a, b) for a, b in combinations(targets, 2)):
        raise ValueError("two arrays of out share memory; give each result an array of its own")
    for target, value in [
        (target, _apart(value, target, targets)) for target, value in zip(targets, values, strict=True)
    ]:
        if target is not value:
            target[...] = value
    return out


def _apart(value: Any, own: Any, targets: list[Any]) -> Any:
    """A value that stays as it is while the other arrays of `out` are written: on the tape it may be an argument."""
    if issubclass(type(value), np.ndarray) and any(
        target is not own and np.may_share_memory(value, target) for target in targets
    ):
        return value.copy()
    return value


def _check(target: Any, value: Any) -> None:
    if not issubclass(type(target), np.ndarray):
        raise TypeError(f"out has a {type(target).__name__} where an array is needed")
    dtype = getattr(value, "dtype", np.result_type(type(value)))
    if target.shape != np.shape(value) or target.dtype != dtype or not target.flags.writeable:
        raise ValueError(
            f"out has an array of {target.dtype}{list(target.shape)} where the result is {dtype}{list(np.shape(value))}; "
            "give a writeable array of the same type"
        )
