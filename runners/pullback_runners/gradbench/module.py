"""A module: functions by name, each of which turns an input into a call to time and its result into JSON."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback_runners.gradbench.engine import Engine

Input = Any
"""`input` of a message, as JSON gave it."""


@dataclass(frozen=True)
class PreparedFunction:
    """A function bound to its input."""

    call: Callable[[], Any]
    """The call that is timed."""
    output: Callable[[Any], Any]
    """Convert its result to JSON values; not timed."""


Prepare = Callable[[Engine, Input], PreparedFunction]
PlannedFunction = tuple[tuple[Any, ...], Callable[[], Callable[..., Any]], tuple[Any, ...]]
"""The sizes that a plan is made for, a maker of the function, and the function's arguments."""
ReadInput = Callable[[Input], PlannedFunction]


@dataclass(frozen=True)
class Module:
    """One of GradBench's evals, as a tool sees it."""

    name: str
    functions: dict[str, Prepare] = field(default_factory=dict)

    def function(self, name: str) -> Callable[[Prepare], Prepare]:
        """Declare a function."""

        def declare(prepare: Prepare) -> Prepare:
            self.functions[name] = prepare
            return prepare

        return declare

    def planned(
        self,
        name: str,
        read: ReadInput,
        output: Callable[[Any], Any],
        derive: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda function: function,
    ) -> None:
        """Declare the function that `read` gives, or what `derive` makes of it, as a plan for each of its sizes."""

        def prepare(engine: Engine, given: Input) -> PreparedFunction:
            sizes, make, arguments = read(given)
            plan = engine.plan((f"{self.name}.{name}", *sizes), lambda: derive(make()))
            return PreparedFunction(lambda: plan(*arguments), output)

        self.functions[name] = prepare


def array(given: Input, name: str, *shape: int | None) -> Any:
    """The numbers of this name in double precision; `shape` has None where any length will do."""
    if name not in given:
        raise ValueError(f"the input has no {name!r}")
    try:
        numbers = np.array(given[name], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name!r} is no array of numbers: {error}") from error
    fits = numbers.ndim == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, numbers.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{name!r} has shape {numbers.shape} instead of ({wanted})")
    return numbers


def whole(given: Input, name: str, least: int = 1) -> int:
    """The whole number of this name, at least `least`."""
    number = given.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise ValueError(f"{name!r} is {number!r} instead of an integer of at least {least}")
    return number


def listed(result: Any) -> Any:
    """Arrays and NumPy's numbers as lists and Python's numbers."""
    return np.asarray(result).tolist()
