"""Selection of the arguments to differentiate by: positions, names, or a tuple of either."""

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pullback import trees
from pullback.core.primitive import TracedValue
from pullback.core.types import dtype_of, is_array_like
from pullback.errors import DifferentiationError, name_of

Wrt = int | str | tuple[int | str, ...]


def chosen(wrt: Wrt | Sequence[int | str] | None, argnums: Wrt | Sequence[int | str] | None) -> Wrt:
    """`wrt`, or `argnums`, the name other engines have for it; the first argument if neither is given."""
    if wrt is not None and argnums is not None:
        raise DifferentiationError("wrt and argnums are two names of one thing; give one of them")
    given = wrt if wrt is not None else argnums
    if given is None:
        return 0
    wanted = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not all(isinstance(argument, int | str) and not isinstance(argument, bool) for argument in wanted):
        raise DifferentiationError(f"wrt={given!r} is no position, no name and no tuple of them")
    return wanted if isinstance(given, tuple | list) else wanted[0]


class Selection:
    """The arguments of a function that were chosen."""

    def __init__(self, function: Callable[..., Any], wrt: Wrt) -> None:
        self.function = function
        self.wrt = wrt

    @cached_property
    def places(self) -> tuple[int | str, ...]:
        """The arguments to differentiate by: positions, and names of those that are given by keyword only."""
        if not self._wanted:
            raise DifferentiationError("wrt=() selects no argument; name at least one")
        return tuple(self._place(argument) for argument in self._wanted)

    @property
    def _wanted(self) -> tuple[int | str, ...]:
        return self.wrt if isinstance(self.wrt, tuple) else (self.wrt,)

    @property
    def positions(self) -> tuple[int, ...]:
        """The same where no argument is given by keyword."""
        return tuple(place for place in self.places if isinstance(place, int))

    def _place(self, argument: int | str) -> int | str:
        if isinstance(argument, int):
            return argument
        parameters = _parameters(self.function)
        names = [name for name, kind in parameters.items() if kind in _POSITIONAL]
        if argument in names:
            return names.index(argument)
        takes_any = inspect.Parameter.VAR_KEYWORD in parameters.values()
        if takes_any or parameters.get(argument) == inspect.Parameter.KEYWORD_ONLY:
            return argument
        names += [name for name, kind in parameters.items() if kind == inspect.Parameter.KEYWORD_ONLY]
        raise DifferentiationError(
            f"wrt={argument!r} names no argument of {name_of(self.function)}; it has {', '.join(names) or 'none'}"
        )

    def bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by position, so that each has a number, and those that can only be given by keyword."""
        by_keyword: dict[str, Any] = {}
        defaulted = any(
            isinstance(argument, str) and not self._is_given(place, args)
            for argument, place in zip(self._wanted, self.places, strict=True)
        )
        if keywords or defaulted:
            bound = inspect.signature(self.function).bind(*args, **keywords)
            bound.apply_defaults()
            args = bound.args
            wanted = {*keywords, *self.places}
            by_keyword = {name: value for name, value in bound.kwargs.items() if name in wanted}
        for place in self.places:
            if not (place in by_keyword if isinstance(place, str) else self._is_given(place, args)):
                raise DifferentiationError(
                    f"wrt={place!r} but {name_of(self.function)} was called with "
                    + (f"{len(args)} arguments" if isinstance(place, int) else "no such argument")
                )
        if len({place % len(args) if isinstance(place, int) else place for place in self.places}) < len(self.places):
            raise DifferentiationError(f"wrt={self.wrt!r} names one argument twice; name each once")
        return args, by_keyword

    @staticmethod
    def _is_given(place: int | str, args: tuple[Any, ...]) -> bool:
        return isinstance(place, int) and -len(args) <= place < len(args)

    def of(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        """The chosen ones."""
        return tuple(keywords[place] if isinstance(place, str) else args[place] for place in self.places)

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any], values: Sequence[Any]) -> Any:
        """The function of all arguments, with others in the chosen places."""
        arguments = list(args)
        by_keyword = dict(keywords)
        for place, value in zip(self.places, values, strict=True):
            if isinstance(place, str):
                by_keyword[place] = value
            else:
                arguments[place] = value
        return self.function(*arguments, **by_keyword)

    def result(self, parts: tuple[Any, ...]) -> Any:
        """The result for each chosen argument: a tuple if `wrt` is one."""
        return parts if isinstance(self.wrt, tuple) else parts[0]


def differentiable_leaves(argument: Any, function: Callable[..., Any]) -> tuple[list[Any], trees.Rebuild]:
    """The leaves of an argument, each of which can have a gradient, and what rebuilds the argument."""
    leaves, rebuild = trees.flatten(argument)
    for leaf in [argument] if trees.is_constant(argument) else leaves:
        differentiable(leaf, function, argument)
    return leaves, rebuild


def differentiable(leaf: Any, function: Callable[..., Any], tree: Any = None) -> Any:
    """The leaf, if it can have a gradient. Errors give its path in the tree."""
    if isinstance(leaf, TracedValue) and not leaf.on_device:
        return leaf
    name = name_of(function)
    if not is_array_like(leaf) and not isinstance(leaf, TracedValue):
        raise DifferentiationError(
            f"{name} cannot be differentiated by a {type(leaf).__name__}{_place(leaf, tree)}; {_CONSTANT}"
        )
    # NumPy loads numpy.ma, 25 ms, when it is named: by code that makes an array of it.
    if (
        type(leaf) is not np.ndarray
        and isinstance(leaf, np.ndarray)
        and isinstance(leaf, np.matrix | np.ma.MaskedArray)
    ):
        raise DifferentiationError(f"{name} cannot be differentiated by a {type(leaf).__name__}; pass a plain array")
    dtype = dtype_of(leaf)
    if dtype.kind not in "fc":
        raise DifferentiationError(
            f"{name} cannot be differentiated by an argument of dtype {dtype}{_place(leaf, tree)}; "
            f"pass floating-point numbers, or {_CONSTANT}"
        )
    return leaf


_CONSTANT = "make it an argument of its own, or the object constant but for some parts: pb.cut(Model(pb.uncut(w), …))"


def _place(leaf: Any, tree: Any) -> str:
    places = (place for place, own in zip(trees.paths(tree), trees.flatten(tree)[0], strict=True) if own is leaf)
    return f" (at {place})" if (place := next(places, "")) else ""


def like(gradient: Any, leaf: Any) -> Any:
    """The gradient in the caller's terms: zeros for none, a Python float for a Python float."""
    if isinstance(leaf, TracedValue) and leaf.on_device:
        return leaf.filled(0) if gradient is None else leaf.placed(gradient)
    if isinstance(gradient, TracedValue) and gradient.on_device:  # by a number beside arrays on the device
        gradient = gradient.fetched()
    if isinstance(leaf, TracedValue) or isinstance(gradient, TracedValue):
        return np.zeros(np.shape(leaf), leaf.dtype)[()] if gradient is None else gradient
    if gradient is None:
        return np.zeros_like(leaf) if issubclass(type(leaf), np.ndarray) else type(leaf)(0)
    return (
        type(leaf)(gradient)
        if issubclass(type(leaf), (float, complex)) and type(leaf) in (float, complex)
        else gradient
    )


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise DifferentiationError(
            f"{name_of(function)} has no signature that can be inspected; give wrt by position"
        ) from error
    return {name: parameter.kind for name, parameter in parameters.items()}
