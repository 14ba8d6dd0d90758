"""Compiled functions: record once per signature, plan, and run the plan from then on.

What cannot be compiled (control flow on values, surroundings that cannot be watched) runs on the tape, and the summary
says why.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import tiers
from pullback.gradients import Gradient
from pullback.ir.printer import format_graph
from pullback.program import Fallback, Program, build
from pullback.signatures import signature

#: Signatures kept per function; the least recently used one goes first.
PLANS_KEPT = 64


class Plan:
    """A function that is compiled when it is called: call it like the function."""

    def __init__(self, function: Callable[..., Any], tier: str) -> None:
        self.function = function
        self.tier = tiers.checked(tier)
        self._lock = threading.Lock()
        self._programs: OrderedDict[Any, Program | Fallback] = OrderedDict()
        self._last: Program | Fallback | None = None

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run, compiling first if arguments of these types have not been seen."""
        if keywords and isinstance(self.function, Gradient):
            args, keywords = self.function.positional(args, keywords), {}
        if self.tier == "unfused" or keywords:
            return self._on_the_tape(args, keywords, "called with keywords" if keywords else "the tier is unfused")
        key, leaves = signature(args)
        program = self._programs.get(key)
        if program is None or program.surroundings is None or not program.surroundings.unchanged():
            program = self._compile(key, args)
        elif len(self._programs) == PLANS_KEPT:
            self._keep(key, program)  # in use: not the next to go
        if isinstance(program, Fallback):
            return self._on_the_tape(args, {}, program.reason)
        values = [*leaves, *[read() for read in program.captured]]
        if program.overwritten and _share_memory(values, program.overwritten):
            return self._on_the_tape(args, {}, "an array that is overwritten shares memory with another argument")
        self._last = program
        return program.finish(program.run(*values), leaves)

    def summary(self) -> dict[str, Any]:
        """What the latest call did: arrays, bytes, copies, state_bytes, kernels, flops, fallbacks and a hash."""
        last = self._latest()
        if isinstance(last, Fallback):
            counts = dict.fromkeys(("arrays", "bytes", "copies", "state_bytes", "kernels", "flops"))
            return {**counts, "fallbacks": [last.reason], "hash": None}
        return dict(last.summary)

    def explain(self) -> str:
        """The graph after each pass, and the program it became."""
        last = self._latest()
        if isinstance(last, Fallback):
            return f"runs on the tape: {last.reason}"
        parts = [f"# {name}\n{format_graph(graph)}" for name, graph in last.stages.graphs]
        return "\n\n".join([*parts, f"# program\n{last.text}"])

    def _latest(self) -> Program | Fallback:
        if self._last is None:
            raise ValueError("this plan has not been called yet; call it once, then ask what it did")
        return self._last

    def _on_the_tape(self, args: tuple[Any, ...], keywords: dict[str, Any], reason: str) -> Any:
        self._last = Fallback(reason, None)
        with tiers.tier("unfused"):
            return self.function(*args, **keywords)

    def _compile(self, key: Any, args: tuple[Any, ...]) -> Program | Fallback:
        if isinstance(self.function, Gradient):
            self.function.positional(args, {})
        with tiers.tier(self.tier):
            program = build(self.function, args)
        self._keep(key, program)
        return program

    def _keep(self, key: Any, program: Program | Fallback) -> None:
        """Put a program last in the order of use; the first ones go."""
        with self._lock:
            self._programs.pop(key, None)
            self._programs[key] = program
            while len(self._programs) > PLANS_KEPT:
                self._programs.popitem(last=False)


def compile_(function: Callable[..., Any], *, tier: str | None = None) -> Plan:
    """A plan for a function or for a gradient: `plan = compile(value_and_grad(f), tier="fused")`.

    The function must depend on its arguments and its surroundings only; what it draws from a random generator or a
    clock while being recorded would be drawn once.
    """
    return Plan(function, tier or (current if (current := tiers.current_tier()) != "unfused" else tiers.TIERS[-1]))


def _share_memory(values: Sequence[Any], overwritten: Sequence[int]) -> bool:
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    return any(
        np.may_share_memory(values[position], other)
        for position in overwritten
        for other in arrays
        if other is not values[position] or sum(other is value for value in arrays) > 1
    )
