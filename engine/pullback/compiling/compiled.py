"""A graph that is ready to run: its schedule, its program, the memory it keeps, and what that amounts to."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.backends import interpreter
from pullback.backends.interpreter import Changed
from pullback.backends.poison import guarded, is_poisoning
from pullback.backends.state import State
from pullback.core.primitive import Effect
from pullback.ir.graph import Graph, Var
from pullback.ir.printer import format_graph
from pullback.planning.arena import lay_out, peak_bytes
from pullback.planning.liveness import analyse
from pullback.planning.schedule import Schedule, plan_memory, summarise, transient


@dataclass(frozen=True, slots=True)
class Compiled:
    """Call it with the values of the graph's inputs: it gives the outputs, or what a guard saw that it should not."""

    program: interpreter.Program
    text: str
    schedule: Schedule
    state: State | None
    constants: tuple[Any, ...]
    """Arrays that the function makes for itself."""
    overwritten: tuple[int, ...]
    """Inputs that are overwritten and restored; they must share memory with no other."""
    summary: dict[str, Any]
    poisoned: bool

    def run(self, values: Sequence[Any]) -> tuple[Any, ...] | Changed:
        """One run, in memory of its own or in a frame of the state."""
        if self.poisoned:
            values = guarded(values, self.overwritten)
        if self.state is None:
            return self.program(*values, *self.constants)  # type: ignore[no-any-return]  # by construction
        frame = self.state.take()
        try:
            return self.program(frame.arrays, *values, *self.constants)  # type: ignore[no-any-return]  # by construction
        finally:
            self.state.give_back(frame)


def compile_graph(graph: Graph, *, keeps: bool, owned: Collection[int] = ()) -> Compiled:
    """Plan and write a graph; a program that `keeps` its memory takes it from its state."""
    schedule = plan_memory(graph, kept=keeps, owned=owned)
    poisoned = is_poisoning()
    emitted = interpreter.emit(schedule, keeps=keeps, poisons=poisoned)
    state = State(schedule, lay_out(schedule), emitted.slots) if keeps else None
    digest = hashlib.sha256(f"{format_graph(graph, sources=False)}\n{emitted.text}".encode()).hexdigest()
    summary = {
        **summarise(schedule),
        "peak_bytes": peak_bytes(schedule),
        "state_bytes": state.nbytes + emitted.bodies_nbytes if state is not None else 0,
        "transient": transient(schedule) if keeps else [],
        "fallbacks": [],
        "hash": digest[:16],
    }
    constants = tuple(capture.value for capture in graph.captures)
    overwritten = _overwritten_inputs(graph)
    return Compiled(emitted.program, emitted.text, schedule, state, constants, overwritten, summary, poisoned)


def _overwritten_inputs(graph: Graph) -> tuple[int, ...]:
    inputs = [*graph.inputs, *(capture.var for capture in graph.captures)]
    liveness = analyse(graph)
    targets = {
        liveness.root(node.inputs[0])
        for node in graph.nodes
        if node.primitive.effect is Effect.OVERWRITES and isinstance(node.inputs[0], Var)
    }
    return tuple(position for position, var in enumerate(inputs) if var in targets)
