"""A graph that is ready to run: its program, the memory it keeps, and what that amounts to."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pullback.backends import interpreter
from pullback.backends.interpreter import Changed
from pullback.backends.native.entry import NativeProgram
from pullback.backends.poison import guarded, is_poisoning
from pullback.backends.state import State
from pullback.core.primitive import Effect
from pullback.ir.graph import Graph, Var, with_guards_of, with_guards_returned
from pullback.ir.printer import format_graph
from pullback.ir.types import ArrayType
from pullback.passes.factoring import take_numbers_out_of_sums
from pullback.passes.powers import share_powers
from pullback.passes.sums import sum_factors
from pullback.planning.arena import lay_out, peak_bytes
from pullback.planning.liveness import analyse
from pullback.planning.schedule import Schedule, flops_of, plan_memory, summarise, transient
from pullback.tiers import KEEPING


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a program's memory, as `plan.explain()` shows it."""

    name: str
    type: ArrayType
    whose: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """Call it with the values of the graph's inputs: it gives the outputs, or what a guard saw that it should not."""

    program: interpreter.Program
    text: str
    memory: tuple[Piece, ...]
    state: State | None
    constants: tuple[Any, ...]
    """Arrays that the function makes for itself."""
    overwritten: tuple[int, ...]
    """Inputs that the program overwrites and restores."""
    summary: dict[str, Any]
    poisoned: bool
    native: NativeProgram | None = None
    """The program as machine code, where nothing of it is left to the interpreter."""
    regions: tuple[tuple[str, str], ...] = ()
    """Names and kernels of the native programs that an interpreted one calls."""
    interpreted: int = 0
    """Steps that the interpreter does between them."""

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


def compile_graph(graph: Graph, *, tier: str, owned: Collection[int] = ()) -> Compiled:
    """Make the program of a graph for a tier. Inputs that are `owned` may be written to after their last use."""
    if tier != "native":
        return _interpreted(graph, keeps=tier in KEEPING, owned=owned)
    from pullback.backends.native import availability  # noqa: PLC0415 - 30 ms that the native tier alone pays

    obstacle = "poisoning looks into the interpreter's memory" if is_poisoning() else availability.why_not()
    if obstacle is not None:
        return _interpreted(graph, keeps=True, owned=owned, fallbacks=[obstacle])
    return _native(share_powers(graph), owned)


def _interpreted(graph: Graph, *, keeps: bool, owned: Collection[int], fallbacks: Sequence[str] = ()) -> Compiled:
    """A program that keeps its memory takes it from its state."""
    schedule = plan_memory(graph, kept=keeps, owned=owned)
    poisoned = is_poisoning()
    emitted = interpreter.emit(schedule, keeps=keeps, poisons=poisoned)
    state = State(schedule.kept_types, lay_out(schedule), emitted.slots) if keeps else None
    summary = {
        **summarise(schedule),
        "peak_bytes": peak_bytes(schedule),
        "state_bytes": state.nbytes + emitted.bodies_nbytes if state is not None else 0,
        "transient": transient(schedule) if keeps else [],
        "fallbacks": list(fallbacks),
        "hash": _hash(graph, emitted.text),
    }
    return Compiled(
        emitted.program,
        emitted.text,
        tuple(_pieces(schedule)),
        state,
        _constants(graph),
        overwritten_inputs(graph),
        summary,
        poisoned,
    )


def _native(graph: Graph, owned: Collection[int]) -> Compiled:
    """One native program, or an interpreted one with native regions."""
    from pullback.backends.native import regions, support  # noqa: PLC0415 - needs LLVM, which not everybody has

    whole = with_guards_returned(graph)
    if not any(map(support.why_not, whole.nodes)):
        return _whole(graph, take_numbers_out_of_sums(sum_factors(whole)))
    split = regions.split(whole)
    compiled = _interpreted(with_guards_of(split.graph, graph), keeps=True, owned=owned, fallbacks=split.fallbacks)
    summary = dict(compiled.summary)
    summary["kernels"] += sum(region.kernels - 1 for region in split.regions)
    for key in ("state_bytes", "peak_bytes"):
        summary[key] += sum(region.native.memory.nbytes for region in split.regions)
    listings = tuple((region.name, region.listing) for region in split.regions)
    summary["hash"] = _hash(graph, "\n".join([compiled.text, *(listing for _, listing in listings)]))
    return replace(compiled, summary=summary, regions=listings, interpreted=split.interpreted)


def _whole(graph: Graph, whole: Graph) -> Compiled:
    from pullback.backends.native import listing  # noqa: PLC0415 - as above
    from pullback.backends.native.running import Native  # noqa: PLC0415 - as above

    native = Native(whole, [guard.seen for guard in graph.guards])
    memory = native.memory
    types = [atom.type for atom in whole.outputs]
    state_bytes = memory.nbytes + sum(type_.nbytes for type_ in types)
    text = listing.format_kernels(memory)
    summary: dict[str, Any] = {
        "arrays": 0,
        "bytes": 0,
        "copies": 0 if memory.in_registers else len(memory.copied),
        "state_bytes": state_bytes,
        "kernels": memory.kernel_count,
        "flops": sum(map(flops_of, graph.nodes)),
        "peak_bytes": state_bytes,
        "transient": [],
        "fallbacks": [],
        "hash": _hash(graph, text),
    }
    pieces = [Piece("arena", ArrayType((memory.nbytes,), listing.BYTE), "kept")] if memory.nbytes else []
    pieces += [Piece(f"out{number}", type_, "returned") for number, type_ in enumerate(types) if type_.shape]

    @cache
    def interpreted() -> interpreter.Program:
        return interpreter.emit(plan_memory(graph)).program

    program = native.runner(lambda *values: interpreted()(*values))  # noqa: PLW0108 - made when needed
    return Compiled(program, text, tuple(pieces), None, (), (), summary, poisoned=False, native=native.program)


def _hash(graph: Graph, text: str) -> str:
    return hashlib.sha256(f"{format_graph(graph, sources=False)}\n{text}".encode()).hexdigest()[:16]


def _constants(graph: Graph) -> tuple[Any, ...]:
    return tuple(capture.value for capture in graph.captures)


def _pieces(schedule: Schedule) -> list[Piece]:
    outputs = set(schedule.output_buffers)
    pieces = []
    for number, type_ in enumerate(schedule.buffers):
        if number < len(schedule.owned):
            whose = "the caller's, given up"
        elif number in outputs:
            whose = "returned"
        else:
            whose = "kept" if number in schedule.kept else "allocated on each call"
        pieces.append(Piece(f"b{number}", type_, whose))
    return pieces


def overwritten_inputs(graph: Graph) -> tuple[int, ...]:
    """Positions of the inputs and captures that the nodes of a graph write to."""
    inputs = [*graph.inputs, *(capture.var for capture in graph.captures)]
    liveness = analyse(graph)
    targets = {
        liveness.root(node.inputs[0])
        for node in graph.nodes
        if node.primitive.effect is Effect.OVERWRITES and isinstance(node.inputs[0], Var)
    }
    return tuple(position for position, var in enumerate(inputs) if var in targets)
