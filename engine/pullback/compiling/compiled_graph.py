"""A graph that is ready to run: its program, the memory it keeps, and what that amounts to."""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from pullback.backends import interpreter
from pullback.backends.interpreter import GuardFailure
from pullback.backends.native.entry import NativeProgram
from pullback.backends.poison import guarded, is_poisoning
from pullback.backends.state import State
from pullback.compiling.program_sources import hash_of_sources
from pullback.core.primitive import Effect, TracedValue
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Graph, Var, with_guards_of, with_guards_returned
from pullback.ir.printer import format_graph
from pullback.passes.pipeline import NATIVE, WHOLLY_NATIVE, Stages
from pullback.planning.arena import lay_out, peak_bytes
from pullback.planning.liveness import analyse
from pullback.planning.schedule import Schedule, flops_of, plan_memory, summarise, transient
from pullback.tiers import KEEPING


class Page:
    """The text of a program, a hash of it and of its graph, and one of its code; made when they are needed."""

    def __init__(
        self,
        graph: Graph,
        write: Callable[[], str],
        *,
        listings: Sequence[str] = (),
        machine_code: Sequence[str] = (),
        is_on_device: bool = False,
    ) -> None:
        self._graph = graph
        self._write = write
        self._listings = listings
        """Texts of the native programs that an interpreted one calls."""
        self._machine_code = machine_code
        """Hashes of what LLVM was given."""
        self._is_on_device = is_on_device

    @cached_property
    def text(self) -> str:
        """The program as `plan.explain()` shows it."""
        return self._write()

    @cached_property
    def hash(self) -> str:
        """The same for programs that print equally, whatever the lines of their sources."""
        return _hash_of(format_graph(self._graph, sources=False), self.text, *self._listings)

    @cached_property
    def program(self) -> str:
        """The same for programs that run the same code: of their kernels, their rules, what calls them, and NumPy's."""
        is_native = bool(self._machine_code) and not self._listings
        sources = hash_of_sources(self._graph, calls_rules=not is_native, is_on_device=self._is_on_device)
        return _hash_of(self.hash, sources, *self._machine_code)


def _hash_of(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a program's memory, as `plan.explain()` shows it."""

    name: str
    type: ArrayType
    whose: str


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """Call it with the values of the graph's inputs: it gives the outputs, or what a guard saw that it should not."""

    program: interpreter.Program
    page: Page
    memory: tuple[Piece, ...]
    state: State | None
    constants: tuple[Any, ...]
    """Arrays that the function makes for itself."""
    overwritten: tuple[int, ...]
    """Inputs that the program overwrites and restores."""
    counts: dict[str, Any]
    """The fields of `plan.summary()` without the hashes."""
    poisoned: bool
    native: NativeProgram | None = None
    """The program as machine code, where nothing of it is left to the interpreter."""
    regions: tuple[tuple[str, str], ...] = ()
    """Names and kernels of the native programs that an interpreted one calls."""
    interpreted: int = 0
    """Steps that the interpreter does between them."""
    kernel_stages: Callable[[], Sequence[tuple[str, str]]] = tuple
    """The kernels of its programs after each pass over kernels, for `plan.explain()`."""
    launches: Callable[[], Sequence[tuple[str, str]]] = tuple
    """PTX of each launch on a device by its name in the text, for `plan.explain()`."""
    replayed: Any = None
    """The program, if it is captured as a CUDA graph (`backends/cuda/capture.py`)."""

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of the program, as in `plan.summary()`."""
        counts = {**self.counts, "hash": self.page.hash, "program": self.page.program}
        if self.replayed is not None:
            counts |= {"graph": dict(self.replayed.counts), "fallbacks": [*counts["fallbacks"], *self.replayed.told]}
        return counts

    def run(self, values: Sequence[Any]) -> tuple[Any, ...] | GuardFailure:
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


class _OnDevice(CompiledGraph):
    """The program of a graph on a device, whose errors are told with the line that they are of."""

    __slots__ = ()

    def run(self, values: Sequence[Any]) -> tuple[Any, ...] | GuardFailure:
        """One run."""
        try:
            return CompiledGraph.run(self, values)
        except RuntimeError as error:
            from pullback.devices.cuda.failures import raise_device_error  # noqa: PLC0415 - which programs on the CPU never need

            raise_device_error(error, peak_bytes=self.counts["peak_bytes"])


def compile_graph(
    graph: Graph, stages: Stages, *, tier: str, owned: Collection[int] = (), values: Sequence[Any] = ()
) -> CompiledGraph:
    """Make the program of a graph for a tier. Inputs that are `owned` may be written to after their last use.

    Where `values`, with which the program will be called first, have one on a device, it runs there.
    """
    if any(isinstance(value, TracedValue) for value in values):
        return _on_device(graph, stages, values, tier=tier)
    if tier != "native":
        return _interpreted(graph, keeps=tier in KEEPING, owned=owned)
    from pullback.backends.native import availability  # noqa: PLC0415 - 30 ms that the native tier alone pays

    obstacle = "poisoning looks into the interpreter's memory" if is_poisoning() else availability.why_not()
    if obstacle is not None:
        return _interpreted(graph, keeps=True, owned=owned, fallbacks=[obstacle])
    return _native(stages.run(NATIVE, graph), stages, owned)


def _on_device(graph: Graph, stages: Stages, values: Sequence[Any], *, tier: str) -> CompiledGraph:
    """A program of kernels of ours and PyTorch's functions."""
    from pullback.backends.cuda import program  # noqa: PLC0415 - arrays on a device are there, and so is PyTorch

    there = [isinstance(value, TracedValue) for value in values]
    device = next(value.tensor.device for value, is_there in zip(values, there, strict=True) if is_there)
    there += [False] * (len(graph.inputs) - len(there))
    written = program.write(graph, stages, there, device, tier=tier)
    counts = {
        "arrays": len(written.arrays),
        "bytes": sum(type_.nbytes for type_ in written.arrays),
        "copies": written.copies,
        "state_bytes": written.state.nbytes if written.state is not None else 0,
        "kernels": written.kernels,
        "flops": sum(map(flops_of, graph.nodes)),
        "moved_bytes": written.moved_bytes,
        "peak_bytes": written.peak_bytes,
        "transient": list(written.transient),
        "looks": written.looks,
        "fallbacks": list(written.fallbacks),
    }
    pieces = [Piece(name, type_, "returned" if is_returned else "kept") for name, type_, is_returned in written.kept]
    pieces += [
        Piece(f"array {number}", type_, f"of the pool of {device}") for number, type_ in enumerate(written.arrays)
    ]
    page = Page(graph, lambda: written.text, is_on_device=True)
    return _OnDevice(
        written.program,
        page,
        tuple(pieces),
        written.state,
        _constants(graph),
        (),
        counts,
        poisoned=False,
        kernel_stages=written.kernel_stages,
        launches=lambda: [(name, text()) for name, text in written.listings],
        replayed=written.replayed,
    )


def _interpreted(graph: Graph, *, keeps: bool, owned: Collection[int], fallbacks: Sequence[str] = ()) -> CompiledGraph:
    """A program that keeps its memory takes it from its state."""
    schedule = plan_memory(graph, kept=keeps, owned=owned)
    poisoned = is_poisoning()
    emitted = interpreter.emit(schedule, keeps=keeps, poisons=poisoned)
    state = State(schedule.kept_types, lay_out(schedule), emitted.slots) if keeps else None
    counts = {
        **summarise(schedule),
        "peak_bytes": peak_bytes(schedule),
        "state_bytes": state.nbytes + emitted.bodies_nbytes if state is not None else 0,
        "transient": transient(schedule) if keeps else [],
        "fallbacks": list(fallbacks),
    }
    return CompiledGraph(
        emitted.program,
        Page(graph, lambda: emitted.text),
        tuple(_pieces(schedule)),
        state,
        _constants(graph),
        overwritten_inputs(graph),
        counts,
        poisoned,
    )


def _native(graph: Graph, stages: Stages, owned: Collection[int]) -> CompiledGraph:
    """One native program, or an interpreted one with native regions."""
    from pullback.backends.native import support  # noqa: PLC0415 - needs LLVM, which not everybody has

    checked = whole = with_guards_returned(graph)
    if _computes_numbers(whole):
        from pullback.backends.native.python_numbers import check_python_numbers  # noqa: PLC0415 - few programs need it

        checked = check_python_numbers(whole)
    if not any(map(support.why_not, checked.nodes)) and all(map(support.is_returned, whole.outputs)):
        if checked is not whole:
            stages.add("python numbers", checked)
        return _whole(graph, stages.run(WHOLLY_NATIVE, checked))
    from pullback.backends.native import regions  # noqa: PLC0415 - programs that are native throughout have none

    split = regions.split(whole)
    stages.add("native regions", split.graph)
    compiled = _interpreted(with_guards_of(split.graph, graph), keeps=True, owned=owned, fallbacks=split.fallbacks)
    counts = dict(compiled.counts)
    counts["kernels"] += sum(region.kernels - 1 for region in split.regions)
    for key in ("state_bytes", "peak_bytes"):
        counts[key] += sum(region.native.memory.nbytes for region in split.regions)
    listings = tuple((region.name, region.listing) for region in split.regions)
    page = Page(
        graph,
        lambda: compiled.page.text,
        listings=[listing for _, listing in listings],
        machine_code=[region.native.text_hash for region in split.regions],
    )
    return replace(
        compiled,
        page=page,
        counts=counts,
        regions=listings,
        interpreted=split.interpreted,
        kernel_stages=lambda: [
            (f"{region.name}: {name}", kernels) for region in split.regions for name, kernels in region.kernel_stages
        ],
    )


def _computes_numbers(graph: Graph) -> bool:
    """True if a number of Python is computed, inside loops and branches too."""
    return any(
        any(var.type.weak for var in node.outputs) or any(_computes_numbers(body) for _, body in node.bodies())
        for node in graph.nodes
    )


def _whole(graph: Graph, whole: Graph) -> CompiledGraph:
    from pullback.backends.native.executable import NativeExecutable  # noqa: PLC0415 - as above

    native = NativeExecutable(whole, [guard.seen for guard in graph.guards])
    memory = native.memory
    types = [atom.type for atom in whole.outputs]
    state_bytes = memory.nbytes + sum(type_.nbytes for type_ in types)
    counts: dict[str, Any] = {
        "arrays": 0,
        "bytes": 0,
        "copies": 0 if memory.in_registers else len(memory.copied) + len(memory.copying),
        "state_bytes": state_bytes,
        "kernels": memory.kernel_count,
        "flops": sum(map(flops_of, graph.nodes)),
        "peak_bytes": state_bytes,
        "transient": [],
        "fallbacks": [],
    }
    pieces = [Piece("arena", ArrayType((memory.nbytes,), np.dtype(np.uint8)), "kept")] if memory.nbytes else []
    pieces += [Piece(f"out{number}", type_, "returned") for number, type_ in enumerate(types) if type_.shape]

    @cache
    def interpreted() -> interpreter.Program:
        return interpreter.emit(plan_memory(graph)).program

    def listing() -> str:
        from pullback.backends.native.kernel_listing import format_kernels  # noqa: PLC0415 - nobody may read it

        return format_kernels(memory)

    def kernel_stages() -> Sequence[tuple[str, str]]:
        from pullback.backends.native.kernel_listing import stages_of_kernels  # noqa: PLC0415 - as above

        return stages_of_kernels(whole, native.vector_bits)

    program = native.runner(lambda *values: interpreted()(*values))  # noqa: PLW0108 - made when needed
    page = Page(graph, listing, machine_code=[native.text_hash])
    return CompiledGraph(
        program,
        page,
        tuple(pieces),
        None,
        (),
        (),
        counts,
        poisoned=False,
        native=native.program,
        kernel_stages=kernel_stages,
    )


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
