"""Compiled functions: record once per signature, plan, and run the plan from then on.

What cannot be compiled (control flow on values, surroundings that cannot be watched) runs on the tape, and the summary
says why.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

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
        self._programs: OrderedDict[Any, Program | Fallback] = OrderedDict()
        self._last: Program | Fallback | None = None

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run, compiling first if arguments of these types have not been seen."""
        if keywords and isinstance(self.function, Gradient):
            args, keywords = self.function.positional(args, keywords), {}
        if self.tier == "unfused" or keywords:
            return self._on_the_tape(args, keywords)
        key, leaves = signature(args)
        program = self._programs.get(key)
        if program is None or not program.surroundings.unchanged():
            program = self._compile(key, args)
        else:
            self._programs.move_to_end(key)
        self._last = program
        if isinstance(program, Fallback):
            return self._on_the_tape(args, {})
        captured = [read() for read in program.captured]
        return program.finish(program.run(*leaves, *captured), leaves)

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

    def _on_the_tape(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        with tiers.tier("unfused"):
            return self.function(*args, **keywords)

    def _compile(self, key: Any, args: tuple[Any, ...]) -> Program | Fallback:
        if isinstance(self.function, Gradient):
            self.function.positional(args, {})
        with tiers.tier(self.tier):
            program = build(self.function, args)
        self._programs[key] = program
        while len(self._programs) > PLANS_KEPT:
            self._programs.popitem(last=False)
        return program


def compile_(function: Callable[..., Any], *, tier: str | None = None) -> Plan:
    """A plan for a function or for a gradient: `plan = compile(value_and_grad(f), tier="fused")`.

    The function must depend on its arguments and its surroundings only; what it draws from a random generator or a
    clock while being recorded would be drawn once.
    """
    return Plan(function, tier or (current if (current := tiers.current_tier()) != "unfused" else tiers.TIERS[-1]))
