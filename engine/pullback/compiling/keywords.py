"""Arguments by keyword: by position where they have one, else behind the others, in the order of their names."""

import inspect
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

from pullback.transforms.gradients import Gradient


def by_position(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by position where they have one, and the rest by keyword."""
    if isinstance(function, Gradient):
        return function.selection.bind(args, keywords)
    try:
        bound = inspect.signature(function).bind(*args, **keywords)
    except ValueError:  # a function that does not tell its arguments
        return args, keywords
    bound.apply_defaults()
    return bound.args, {name: value for name, value in bound.kwargs.items() if name in keywords}


def with_names(function: Callable[..., Any], count: int, names: tuple[str, ...]) -> Callable[..., Any]:
    """The function of `count` arguments and those behind them, which it takes by these names."""
    if not isinstance(function, Gradient):
        return update_wrapper(partial(_named, function, names), function, updated=())
    positions = tuple(
        count + names.index(place) if isinstance(place, str) else place % count for place in function.selection.places
    )
    return type(function)(
        with_names(function.function, count, names),
        positions if isinstance(function.wrt, tuple) else positions[0],
        with_value=function.with_value,
        has_aux=function.has_aux,
        holomorphic=function.holomorphic,
    )


def _named(function: Callable[..., Any], names: tuple[str, ...], *args: Any) -> Any:
    values = args[len(args) - len(names) :]
    return function(*args[: len(args) - len(names)], **dict(zip(names, values, strict=True)))
