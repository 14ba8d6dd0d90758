"""Elementary functions as functions of a module, which programs with many uses of one call instead of repeating its body.

A body is 30 to 100 instructions, of which LLVM takes about 2 ms to make machine code; a call costs what the registers around it
hold. Uses are counted before nests are written (`Module.uses`), so equal steps of a program are compiled in the same way.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pullback.backends.llvm.builder.lanes import Lanes

#: Uses of one function in a module up to which its body is repeated. A call in a nest of few points costs 1 to 2 ns for each
#: vector; in a long one, where bodies that follow each other overlap, up to half as much again as the function itself.
MOST_BODIES: Final = 8
MOST_LONG_BODIES: Final = 64
LONG_NEST: Final = 1024
"""Points of a long nest."""


def most_bodies(points: int) -> int:
    """Uses of a function up to which a nest of so many points repeats its body."""
    return MOST_LONG_BODIES if points >= LONG_NEST else MOST_BODIES


def call(lanes: Lanes, name: str, emits: Sequence[Callable[..., str]], values: Sequence[str]) -> list[str]:
    """Results of functions of the same values, by one call of a function that computes them together.

    Functions that share most of their work (sine and cosine) are called once where both are needed.
    """
    return lanes.function.once(
        ("call", name, lanes.dtype, lanes.width, *values), lambda: _call(lanes, name, emits, values)
    )


def _call(lanes: Lanes, name: str, emits: Sequence[Callable[..., str]], values: Sequence[str]) -> list[str]:
    module, key = lanes.function.module, ("elementary", name, lanes.dtype, lanes.width)
    together = lanes.type if len(emits) == 1 else f"{{{', '.join([lanes.type] * len(emits))}}}"
    if key not in module.kernels:
        parameters = [(lanes.type, f"x{k}") for k in range(len(values))]
        function = module.kernels[key] = module.function(f"{name}_of_{lanes.suffix}", parameters, returns=together)
        own = Lanes(function, lanes.dtype, lanes.width)
        results = [emit(own, *(f"%{parameter}" for _, parameter in parameters)) for emit in emits]
        function.give(results[0] if len(results) == 1 else _as_one(own, together, results))
    operands = [(lanes.type, value) for value in values]
    result = lanes.function.call(together, f"@{module.kernels[key].name}", *operands)
    if len(emits) == 1:
        return [result]
    return [lanes.function.value(f"extractvalue {together} {result}, {k}") for k in range(len(emits))]


def _as_one(lanes: Lanes, together: str, results: Sequence[str]) -> str:
    one = "poison"
    for k, result in enumerate(results):
        one = lanes.function.value(f"insertvalue {together} {one}, {lanes.type} {result}, {k}")
    return one
