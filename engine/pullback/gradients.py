"""Gradients on the tape, pullbacks and tangents: what every tier falls back to."""

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property, update_wrapper
from typing import Any

import numpy as np

from pullback import trees
from pullback.errors import DifferentiationError, PullbackReuseError
from pullback.ir.types import is_array_like, type_of
from pullback.primitive import Traced, tracing
from pullback.tangents import DualTracer, ForwardTrace
from pullback.tape import Tape, TapeTracer

Wrt = int | str | tuple[int | str, ...]


class Gradient:
    """A function that computes the gradient of another, and its value if asked."""

    def __init__(self, function: Callable[..., Any], wrt: Wrt, *, with_value: bool) -> None:
        if not callable(function):
            raise DifferentiationError(f"grad takes a function, not {type(function).__name__}")
        self.function = function
        self.wrt = wrt
        self.with_value = with_value
        update_wrapper(self, function, updated=())  # not __dict__: the function may be a Gradient itself

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

    def positional(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, so that each has a number."""
        if keywords:
            bound = inspect.signature(self.function).bind(*args, **keywords)
            bound.apply_defaults()
            by_keyword = bound.kwargs.keys() & keywords.keys()
            if by_keyword:
                raise DifferentiationError(
                    f"{name_of(self.function)} takes {', '.join(sorted(by_keyword))} by keyword only; "
                    "wrap it in a function of positional arguments"
                )
            args = bound.args
        for position in self.positions:
            if not -len(args) <= position < len(args):
                raise DifferentiationError(
                    f"wrt={position} but {name_of(self.function)} was called with {len(args)} arguments"
                )
        if len({position % len(args) for position in self.positions}) < len(self.positions):
            raise DifferentiationError(f"wrt={self.wrt!r} asks for one argument twice; name each once")
        return args

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run on the tape."""
        return self.eagerly(self.positional(args, keywords))

    def eagerly(self, args: tuple[Any, ...]) -> Any:
        """Run on the tape."""
        arguments = list(args)
        with Tape() as tape:
            watched: list[tuple[list[Any], list[TapeTracer], trees.Rebuild]] = []
            for position in self.positions:
                leaves, rebuild = trees.flatten(args[position])
                tracers = [tape.watch(differentiable(leaf, self.function)) for leaf in leaves]
                arguments[position] = rebuild(iter(tracers))
                watched.append((leaves, tracers, rebuild))
            try:
                output = self.function(*arguments)
                value = scalar(tape.value_of(output), self.function)
                inputs = [tracer for _, tracers, _ in watched for tracer in tracers]
                gradients = iter(tape.sweep([(output, value.dtype.type(1))], inputs, once=True))
            except BaseException:
                tape.undo()
                raise
        parts = tuple(rebuild(iter([like(next(gradients), leaf) for leaf in leaves])) for leaves, _, rebuild in watched)
        return self.result(value, parts)

    def result(self, value: Any, parts: tuple[Any, ...]) -> Any:
        """What the caller asked for: one gradient or a tuple of them, with the value or without."""
        gradient = parts if isinstance(self.wrt, tuple) else parts[0]
        return (value, gradient) if self.with_value else gradient


def vjp(function: Callable[..., Any], *args: Any, once: bool = False) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Value of `function(*args)` and its pullback: from a cotangent of the value to a tuple, one cotangent per argument.

    The pullback may be called many times, unless `once`, which lets it give up what it saved as it goes.
    """
    with Tape() as tape:
        tracers = [tape.watch(differentiable(argument, function)) for argument in args]
        try:
            output = function(*tracers)
            value = one_array(tape.value_of(output), "vjp")
        except BaseException:
            tape.undo()
            raise
    if isinstance(value, np.ndarray) and not tape.has_overwritten:
        value = np.array(value)  # what the tape saved is not for the caller to write to
    used = False

    def pullback(y_bar: Any) -> tuple[Any, ...]:
        nonlocal used
        if used and (once or tape.has_overwritten):
            why = "was made with once=True" if once else "put back what pb.inplace had overwritten"
            raise PullbackReuseError(f"this pullback {why} and has been called; call vjp(f, …) again for another")
        if np.shape(y_bar) != np.shape(value):
            raise DifferentiationError(
                f"the pullback got a cotangent of shape {np.shape(y_bar)}, the value has shape {np.shape(value)}"
            )
        used = True
        dtype = getattr(value, "dtype", None)
        if dtype is not None and not isinstance(y_bar, Traced):
            y_bar = np.asarray(y_bar, dtype)[()]
        gradients = tape.sweep([(output, y_bar)], tracers, once=once)
        return tuple(like(gradient, argument) for gradient, argument in zip(gradients, args, strict=True))

    return value, pullback


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Value of `function(*primals)` and its tangent when the arguments move along `tangents`."""
    for primal, tangent in zip(primals, tangents, strict=True):
        if np.shape(primal) != np.shape(tangent):
            raise DifferentiationError(
                f"a tangent of shape {np.shape(tangent)} does not fit an argument of shape {np.shape(primal)}"
            )
    with tracing(ForwardTrace()) as trace:
        duals = [
            DualTracer(trace, differentiable(primal, function), tangent)
            for primal, tangent in zip(primals, tangents, strict=True)
        ]
        output = function(*duals)
        one_array(output.value if isinstance(output, DualTracer) else output, "jvp")
    if isinstance(output, DualTracer) and output.trace is trace:
        return output.value, output.tangent
    return output, np.zeros(np.shape(output), getattr(output, "dtype", float))[()]


def name_of(function: Callable[..., Any]) -> str:
    """What an error calls a function; a partial has no name."""
    return getattr(function, "__name__", "the function")


def _positional_names(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise DifferentiationError(f"{name_of(function)} does not tell its arguments; give wrt by position") from error
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in positional]


def one_array(value: Any, transformation: str) -> Any:
    """The value, if it is an array or a number."""
    if not is_array_like(value) and not isinstance(value, Traced):
        raise DifferentiationError(
            f"{transformation} needs a function that returns one array, not {type(value).__name__}"
        )
    return value


def differentiable(leaf: Any, function: Callable[..., Any]) -> Any:
    """The leaf, if it can have a gradient."""
    if isinstance(leaf, Traced):
        return leaf
    name = name_of(function)
    if not is_array_like(leaf):
        raise DifferentiationError(
            f"{name} cannot be differentiated by a {type(leaf).__name__}; pass an array or a number"
        )
    if isinstance(leaf, np.matrix | np.ma.MaskedArray):
        raise DifferentiationError(f"{name} cannot be differentiated by a {type(leaf).__name__}; pass a plain array")
    dtype = type_of(leaf).dtype
    if dtype.kind == "c":
        raise DifferentiationError(f"{name} cannot be differentiated by complex numbers; this engine takes real ones")
    if dtype.kind != "f":
        raise DifferentiationError(
            f"{name} cannot be differentiated by an argument of dtype {dtype}; pass floating-point numbers"
        )
    return leaf


def scalar(value: Any, function: Callable[..., Any]) -> Any:
    """The value of the function with a dtype, if it is one real number."""
    name = name_of(function)
    if not isinstance(value, Traced) and not is_array_like(value):
        raise DifferentiationError(
            f"grad needs a function that returns one number; {name} returned {type(value).__name__}"
        )
    if np.shape(value) != ():
        raise DifferentiationError(
            f"grad needs a function that returns one number; {name} returned an array of shape {np.shape(value)} (sum it, or use vjp)"
        )
    own: Any = value if isinstance(value, Traced) else np.asarray(value)[()]
    if own.dtype.kind != "f":
        raise DifferentiationError(f"grad needs a real floating-point value; {name} returned {own.dtype}")
    return own


def like(gradient: Any, leaf: Any) -> Any:
    """The gradient in the caller's terms: zeros for none, a Python float for a Python float."""
    if isinstance(leaf, Traced) or isinstance(gradient, Traced):
        return np.zeros(np.shape(leaf), leaf.dtype)[()] if gradient is None else gradient
    if gradient is None:
        return np.zeros_like(leaf) if isinstance(leaf, np.ndarray) else type(leaf)(0)
    return type(leaf)(gradient) if isinstance(leaf, (float, complex)) and type(leaf) in (float, complex) else gradient
