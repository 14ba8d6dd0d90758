"""By which arguments a transformation differentiates: positions, names, or a tuple of either."""

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pullback.core.primitive import Traced
from pullback.errors import DifferentiationError
from pullback.ir.types import is_array_like, type_of

Wrt = int | str | tuple[int | str, ...]


def chosen(wrt: Wrt | Sequence[int | str] | None, argnums: Wrt | Sequence[int | str] | None) -> Wrt:
    """`wrt`, or `argnums`, the name other engines have for it; the first argument if neither is given."""
    if wrt is not None and argnums is not None:
        raise DifferentiationError("wrt and argnums are two names of one thing; give one of them")
    given = wrt if wrt is not None else argnums
    if given is None:
        return 0
    return given if isinstance(given, int | str) else tuple(given)


class Selection:
    """The arguments of a function that were chosen."""

    def __init__(self, function: Callable[..., Any], wrt: Wrt) -> None:
        self.function = function
        self.wrt = wrt

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """Positions of the arguments to differentiate by."""
        wanted = self.wrt if isinstance(self.wrt, tuple) else (self.wrt,)
        if not wanted:
            raise DifferentiationError("wrt=() asks for no gradient; name at least one argument")
        return tuple(self._position(argument) for argument in wanted)

    def _position(self, argument: int | str) -> int:
        if isinstance(argument, int):
            return argument
        names = _positional_names(self.function)
        if argument not in names:
            raise DifferentiationError(
                f"wrt={argument!r} names no argument of {name_of(self.function)}; it has {', '.join(names) or 'none'}"
            )
        return names.index(argument)

    def bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by position, so that each has a number, and those that can only be given by keyword."""
        by_keyword: dict[str, Any] = {}
        if keywords:
            bound = inspect.signature(self.function).bind(*args, **keywords)
            bound.apply_defaults()
            args = bound.args
            by_keyword = {name: value for name, value in bound.kwargs.items() if name in keywords}
        for position in self.positions:
            if not -len(args) <= position < len(args):
                raise DifferentiationError(
                    f"wrt={position} but {name_of(self.function)} was called with {len(args)} arguments"
                )
        if len({position % len(args) for position in self.positions}) < len(self.positions):
            raise DifferentiationError(f"wrt={self.wrt!r} asks for one argument twice; name each once")
        return args, by_keyword

    def of(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The chosen ones."""
        return tuple(args[position] for position in self.positions)

    def put(self, args: tuple[Any, ...], values: tuple[Any, ...]) -> list[Any]:
        """All arguments, with others in the chosen places."""
        arguments = list(args)
        for position, value in zip(self.positions, values, strict=True):
            arguments[position] = value
        return arguments

    def result(self, parts: tuple[Any, ...]) -> Any:
        """One thing per chosen argument: a tuple if a tuple was asked for."""
        return parts if isinstance(self.wrt, tuple) else parts[0]


def name_of(function: Callable[..., Any]) -> str:
    """What an error calls a function; a partial has no name."""
    return getattr(function, "__name__", "the function")


def differentiable(leaf: Any, function: Callable[..., Any]) -> Any:
    """The leaf, if it can have a gradient."""
    if isinstance(leaf, Traced):
        return leaf
    name = name_of(function)
    if not is_array_like(leaf):
        raise DifferentiationError(
            f"{name} cannot be differentiated by a {type(leaf).__name__}; pass an array or a number, "
            "or mark it constant with pb.cut"
        )
    if isinstance(leaf, np.matrix | np.ma.MaskedArray):
        raise DifferentiationError(f"{name} cannot be differentiated by a {type(leaf).__name__}; pass a plain array")
    dtype = type_of(leaf).dtype
    if dtype.kind not in "fc":
        raise DifferentiationError(
            f"{name} cannot be differentiated by an argument of dtype {dtype}; pass floating-point numbers"
        )
    return leaf


def like(gradient: Any, leaf: Any) -> Any:
    """The gradient in the caller's terms: zeros for none, a Python float for a Python float."""
    if isinstance(leaf, Traced) or isinstance(gradient, Traced):
        return np.zeros(np.shape(leaf), leaf.dtype)[()] if gradient is None else gradient
    if gradient is None:
        return np.zeros_like(leaf) if isinstance(leaf, np.ndarray) else type(leaf)(0)
    return type(leaf)(gradient) if isinstance(leaf, (float, complex)) and type(leaf) in (float, complex) else gradient


def _positional_names(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise DifferentiationError(f"{name_of(function)} does not tell its arguments; give wrt by position") from error
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in positional]
