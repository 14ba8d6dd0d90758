"""Nested containers as one flat vector, and back."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compat.autograd.core import make_vjp


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Give `(vector, unflatten)`; dicts by sorted keys. Both directions are differentiable.

    The pullback of flattening puts a vector into the form of the value: flattening only moves elements.
    """
    unflatten, vector = make_vjp(_flat, value)
    return vector, unflatten


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """The function from flat vectors to flat vectors, with `unflatten` and the flat example."""
    vector, unflatten = flatten(example)

    def flat(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return flat, unflatten, vector


def _flat(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return _joined([_flat(part) for part in value])
    if isinstance(value, dict):
        return _joined([_flat(value[key]) for key in sorted(value)])
    return np.ravel(value)


def _joined(parts: list[Any]) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0)
