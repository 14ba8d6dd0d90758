"""Gradients on the tape: what every tier falls back to."""

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any

import numpy as np

from pullback import trees
from pullback.core.primitive import TracedValue
from pullback.core.types import is_array_like, shape_of
from pullback.errors import DifferentiationError, name_of
from pullback.numpy_api.traced_stores import given
from pullback.traces.tape import Tape, TapeTracer
from pullback.transforms.arguments import Selection, Wrt, differentiable_leaves, like


class Gradient:
    """A function that computes the gradient of another, and optionally its value."""

    def __init__(
        self,
        function: Callable[..., Any],
        wrt: Wrt,
        *,
        with_value: bool,
        has_aux: bool = False,
        holomorphic: bool = False,
    ) -> None:
        if not callable(function):
            raise DifferentiationError(f"grad takes a function, not {type(function).__name__}")
        self.function = function
        self.wrt = wrt
        self.with_value = with_value
        self.has_aux = has_aux
        self.holomorphic = holomorphic
        update_wrapper(self, function, updated=())  # not __dict__: the function may be a Gradient itself

    @cached_property
    def selection(self) -> Selection:
        """The arguments to differentiate by."""
        return Selection(self.function, self.wrt)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of these arguments."""
        return self.selection.positions

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run on the tape."""
        return self.eagerly(*self.selection.bind(args, keywords))

    def eagerly(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run on the tape."""
        with Tape() as tape:
            watched: list[tuple[list[Any], list[TapeTracer], trees.Rebuild]] = []
            arguments = []
            for argument in self.selection.of(args, keywords):
                leaves, rebuild = differentiable_leaves(argument, self.function)
                tracers = [given(tape.watch(leaf)) for leaf in leaves]
                arguments.append(rebuild(iter(tracers)))
                watched.append((leaves, tracers, rebuild))
            try:
                output = self.selection.call(args, keywords, arguments)
                output, aux = split_aux(output, self.function) if self.has_aux else (output, None)
                value = scalar(tape.value_of(output), self.function, holomorphic=self.holomorphic)
                inputs = [tracer for _, tracers, _ in watched for tracer in tracers]
                gradients = iter(tape.sweep([(output, one_like(value))], inputs, once=True))
            except BaseException:
                tape.undo()
                raise
        parts = tuple(
            rebuild(trees.Gradients([like(next(gradients), leaf) for leaf in leaves])) for leaves, _, rebuild in watched
        )
        return self.result(value, parts, plain_tree(aux, tape) if self.has_aux else None)

    def result(self, value: Any, parts: tuple[Any, ...], aux: Any = None) -> Any:
        """The result in the caller's form: one gradient or a tuple of them, with or without the value and aux."""
        gradient = self.selection.result(parts)
        if self.with_value:
            return ((value, aux) if self.has_aux else value), gradient
        return (gradient, aux) if self.has_aux else gradient


def one_like(value: Any) -> Any:
    """The cotangent of a single number by itself."""
    return value.filled(1) if isinstance(value, TracedValue) and value.on_device else value.dtype.type(1)


def split_aux(output: Any, function: Callable[..., Any]) -> tuple[Any, Any]:
    """Value and what is returned beside it."""
    if not isinstance(output, tuple) or len(output) != 2:
        raise DifferentiationError(
            f"has_aux=True needs a function that returns (value, aux); {name_of(function)} returned "
            f"{f'{len(output)} values' if isinstance(output, tuple) else 'one array' if isinstance(output, TracedValue) else type(output).__name__}"
        )
    return output


def plain_tree(tree: Any, tape: Tape) -> Any:
    """A tree without this tape's tracers: their values."""
    leaves, rebuild = trees.flatten(tree)
    return rebuild(iter([tape.value_of(leaf) for leaf in leaves]))


def scalar(value: Any, function: Callable[..., Any], *, holomorphic: bool = False) -> Any:
    """The value of the function with a dtype, if it is one real number, or one complex number of a holomorphic function."""
    name = name_of(function)
    if not isinstance(value, TracedValue) and not is_array_like(value):
        raise DifferentiationError(
            f"grad needs a function that returns one number; {name} returned {type(value).__name__}"
        )
    if shape_of(value) != ():
        raise DifferentiationError(
            f"grad needs a function that returns one number; {name} returned an array of shape {np.shape(value)} (sum it, or use vjp)"
        )
    own: Any = value if isinstance(value, TracedValue) else np.asarray(value)[()]
    if holomorphic and own.dtype.kind != "c":
        raise DifferentiationError(f"holomorphic=True needs a complex value; {name} returned {own.dtype}")
    if not holomorphic and own.dtype.kind == "c":
        raise DifferentiationError(
            f"grad needs a real value; {name} returned {own.dtype} (take its real part, or say holomorphic=True)"
        )
    if own.dtype.kind not in "fc":
        raise DifferentiationError(f"grad needs a real floating-point value; {name} returned {own.dtype}")
    return own
