"""Compiled functions: record once per signature, plan, and run the plan from then on.

A signature is the structure of the arguments and the type of every leaf. What cannot be compiled (control flow on
values, surroundings that cannot be watched) runs on the tape, and the summary says why.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback import tiers, trees
from pullback.backends import interpreter
from pullback.gradients import Gradient, differentiable, like, scalar
from pullback.ir.graph import ArrayType, Capture, Graph, is_array_like, type_of
from pullback.ir.printer import format_graph
from pullback.passes.differentiate import differentiate
from pullback.passes.pipeline import Stages, simplify
from pullback.planning.schedule import plan_memory, summarise
from pullback.recorder import NeedsValueError, record
from pullback.surroundings import Surroundings

#: Signatures kept per function; the least recently used one goes first.
PLANS_KEPT = 64


class CannotCompileError(Exception):
    """Why a function stays on the tape; caught here, told in the summary."""


@dataclass(frozen=True, slots=True)
class Program:
    """A function compiled for one signature."""

    run: interpreter.Program
    finish: Callable[[tuple[Any, ...], list[Any]], Any]
    captured: tuple[Callable[[], Any], ...]
    surroundings: Surroundings
    summary: dict[str, Any]
    stages: Stages
    text: str


@dataclass(frozen=True, slots=True)
class Fallback:
    """A signature that runs on the tape, and why."""

    reason: str
    surroundings: Surroundings


class Plan:
    """A function that is compiled when it is called: call it like the function."""

    def __init__(self, function: Callable[..., Any], tier: str) -> None:
        self.function = function
        self.tier = tiers.checked(tier)
        self._programs: OrderedDict[Any, Program | Fallback] = OrderedDict()
        self._last: Program | Fallback | None = None

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run, compiling first if arguments of these types have not been seen."""
        if isinstance(self.function, Gradient):
            args = self.function.positional(args, keywords)
            keywords = {}
        if self.tier == "unfused" or keywords:
            return self._on_the_tape(args, keywords)
        leaves, rebuild = trees.flatten(args)
        key = (trees.structure(args), tuple(map(_signature, leaves)))
        program = self._programs.get(key)
        if program is None or not program.surroundings.unchanged():
            program = self._programs[key] = self._compile(leaves, rebuild)
            while len(self._programs) > PLANS_KEPT:
                self._programs.popitem(last=False)
        else:
            self._programs.move_to_end(key)
        self._last = program
        if isinstance(program, Fallback):
            return self._on_the_tape(args, keywords)
        return program.finish(program.run(*leaves, *(read() for read in program.captured)), leaves)

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

    def _compile(self, leaves: list[Any], rebuild: trees.Rebuild) -> Program | Fallback:
        function = self.function.function if isinstance(self.function, Gradient) else self.function
        surroundings = Surroundings(function)
        if surroundings.obstacle is not None:
            return Fallback(surroundings.obstacle, surroundings)
        try:
            with tiers.tier(self.tier):
                return self._build(function, leaves, rebuild, surroundings)
        except (CannotCompileError, NeedsValueError) as reason:
            return Fallback(str(reason), surroundings)

    def _build(
        self, function: Callable[..., Any], leaves: list[Any], rebuild: trees.Rebuild, surroundings: Surroundings
    ) -> Program:
        if isinstance(self.function, Gradient):
            for leaf in _wanted_leaves(self.function, leaves, rebuild)[0]:
                differentiable(leaves[leaf], function)
        for leaf in leaves:
            if not is_array_like(leaf) or (isinstance(leaf, np.ndarray) and type(leaf) is not np.ndarray):
                raise CannotCompileError(f"an argument is a {type(leaf).__name__}, not an array or a number")
        stages = Stages()

        def forward(*traced: Any) -> tuple[list[Any], trees.Rebuild]:
            return trees.flatten(function(*rebuild(iter(traced))))

        graph, rebuild_output = record(forward, [type_of(leaf) for leaf in leaves])
        stages.add("recorded", graph)
        captured = tuple(_reader(capture, surroundings) for capture in graph.captures)
        if isinstance(self.function, Gradient):
            graph, finish = _differentiated(self.function, graph, leaves, rebuild, stages)
        else:
            finish = _finish_values(rebuild_output)
        graph = simplify(graph, stages)
        schedule = plan_memory(graph)
        program, text = interpreter.emit(schedule)
        digest = hashlib.sha256(f"{format_graph(graph, sources=False)}\n{text}".encode()).hexdigest()
        summary = {**summarise(schedule), "fallbacks": [], "hash": digest[:16]}
        captured += tuple(_held(capture) for capture in graph.captures[len(captured) :])
        return Program(program, finish, captured, surroundings, summary, stages, text)


def compile_(function: Callable[..., Any], *, tier: str | None = None) -> Plan:
    """A plan for a function or for a gradient: `plan = compile(value_and_grad(f), tier="fused")`.

    The function must depend on its arguments and its surroundings only; what it draws from a random generator or a
    clock while being recorded would be drawn once.
    """
    return Plan(function, tier or (current if (current := tiers.current_tier()) != "unfused" else tiers.TIERS[-1]))


def _signature(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return type(leaf), leaf.shape, leaf.dtype
    return type(leaf)


def _reader(capture: Capture, surroundings: Surroundings) -> Callable[[], Any]:
    """How a captured array is read again, with its type checked: another shape or dtype means recording anew."""
    getter = surroundings.getter(capture.value)
    if getter is None:
        raise CannotCompileError(
            "the function makes an array, or takes one from where it cannot be found again; pass it as an argument"
        )
    expected = capture.var.type
    surroundings.watch(lambda: _type_or_none(getter()), expected)
    return getter


def _type_or_none(value: Any) -> ArrayType | None:
    return type_of(value) if type(value) is np.ndarray else None


def _held(capture: Capture) -> Callable[[], Any]:
    return lambda: capture.value


def _differentiated(
    gradient: Gradient, graph: Graph, leaves: list[Any], rebuild: trees.Rebuild, stages: Stages
) -> tuple[Graph, Callable[[tuple[Any, ...], list[Any]], Any]]:
    """The joint graph, and how its outputs become what the caller asked for."""
    if len(graph.outputs) != 1:
        raise CannotCompileError("the function returns more than one value")
    scalar(_example(graph.outputs[0].type), gradient.function)
    wrt, rebuild_parts = _wanted_leaves(gradient, leaves, rebuild)
    joint, mask = differentiate(graph, wrt, with_value=gradient.with_value)
    stages.add("differentiated", joint)

    def finish(outputs: tuple[Any, ...], arguments: list[Any]) -> Any:
        values = iter(outputs)
        value = next(values) if gradient.with_value else None
        gradients = iter(
            [like(next(values) if present else None, arguments[leaf]) for leaf, present in zip(wrt, mask, strict=True)]
        )
        return gradient.result(value, tuple(part(gradients) for part in rebuild_parts))

    return joint, finish


def _wanted_leaves(
    gradient: Gradient, leaves: list[Any], rebuild: trees.Rebuild
) -> tuple[list[int], list[trees.Rebuild]]:
    """Which leaves to differentiate by, in order, and how their gradients become trees, one per wanted argument."""
    numbered = rebuild(iter(range(len(leaves))))
    parts = [trees.flatten(numbered[position]) for position in gradient.positions]
    return [leaf for part, _ in parts for leaf in part], [rebuild_part for _, rebuild_part in parts]


def _finish_values(rebuild: trees.Rebuild) -> Callable[[tuple[Any, ...], list[Any]], Any]:
    return lambda outputs, _: rebuild(iter(outputs))


def _example(type_: ArrayType) -> Any:
    return np.broadcast_to(np.zeros((), type_.dtype), type_.shape)
