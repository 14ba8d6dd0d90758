"""A graph as a straight line of steps: what the tiers `fused`, `stateful` and `native` run on a device.

Nests of elementwise operations and sums are kernels of ours, and so are joins and stores by basic keys (`nests/data_movement.py`); every other
node is one call of PyTorch, and views are views. Types are settled when the program is written. In the tier `fused` every array is let go
after its last use: PyTorch's pool gives its memory to the next.

    def program(in0, in1):
        in0 = in0.tensor
        in1 = in1.tensor
        v0 = matmul0(in0, in1)
        v1, v2 = nest1(v0)               # [100, 100]: tanh, square, sum
        del v0
        return (array(v2), array(v1), )

A program that keeps its memory writes into the tensors of a frame, those of the results among them (`state.py`):

    def program(frame, in0, in1):
        v0, v1, v2 = frame
        in0 = in0.tensor
        in1 = in1.tensor
        matmul0(v0, in0, in1)
        nest1(v0, v1, v2)                # [100, 100]: tanh, square, sum
        return (array(v2), array(v1), )

A program that is captured is that in two functions: `prepare` does what is of the host, `work` what is of the device (`capture.py`).

Steps that PyTorch has no way of writing for (`rows/into.py` has the others) take memory of its pool; `transient` names them.

What a nest reads is in C order and aligned, which `in_order` sees to. Where kernels cannot be loaded, a nest is as many steps as it
has nodes, and the reason is among the fallbacks.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from pullback.backends.cuda.bounds_checks import Bounds, DeferredBoundsCheck, bounds_of
from pullback.backends.cuda.branches import CONVOLUTIONS, MULTIPROCESSORS, branched, is_small
from pullback.backends.cuda.capture import (
    ALIGNMENT,
    DriverCapture,
    Graphs,
    HostCapture,
    Lane,
    ReplayedProgram,
    Sets,
    branch,
    is_in_order,
    join,
    recording,
)
from pullback.backends.cuda.kernel_launch import KernelLoader, Loader, emulated, listing
from pullback.backends.cuda.kernel_passes import KernelInput
from pullback.backends.cuda.kernels.kernel_text import Kernels as WrittenKernels
from pullback.backends.cuda.kernels.kernel_text import write_kernels, write_together
from pullback.backends.cuda.kernels.phases import Place
from pullback.backends.cuda.kernels.recurrences import write_recurrence
from pullback.backends.cuda.loops import (
    MOST_BRANCH_BYTES,
    MOST_NODES,
    Body,
    BothBranches,
    Branches,
    Scan,
    While,
)
from pullback.backends.cuda.state import DeviceState
from pullback.backends.cuda.statements import WORK, Statement, Text
from pullback.backends.interpreter import GuardFailure
from pullback.backends.llvm.builder.lanes import DTYPES
from pullback.backends.native import availability
from pullback.backends.nests.data_movement import Move, is_moved, moves_of
from pullback.backends.nests.fusion import FusedNodes, Kernel, Kernels, SingleNode, kept_values, nodes_of
from pullback.backends.nests.joins_in_place import join_of
from pullback.backends.nests.kernel_listing import format_stages
from pullback.backends.nests.nest_building import nest_of
from pullback.backends.nests.stores import array_of
from pullback.backends.nests.views import Access, Views, is_view
from pullback.backends.poison import is_poisoning
from pullback.control.checkpoint_rule import checkpointed
from pullback.control.scan_rule import Layout, scan
from pullback.control.switch_rule import switch
from pullback.control.while_rule import while_
from pullback.core.primitive import Effect, Primitive
from pullback.core.types import ArrayType, Shape
from pullback.dataclass import dataclass
from pullback.devices.cuda.eager import DEVICE, DeviceArray, is_composed
from pullback.devices.cuda.failures import LINES, SOURCE, is_blocking
from pullback.devices.cuda.rows.into import into_at_numbers, row_into
from pullback.devices.cuda.rows.table import row_for
from pullback.devices.cuda.tensor_calls import row_application
from pullback.devices.cuda.values import tensor_of, torch_dtype
from pullback.errors import DeviceError, TracingError
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.pipeline import Stages
from pullback.rules.cumulative import linear_recurrence
from pullback.rules.inplace import copy
from pullback.rules.shapes import broadcast_to, reshape
from pullback.rules.storing import STORES, set_at
from pullback.tiers import KEEPING

Program = Callable[..., Any]

_HOST = torch.device("cpu")


class NoProgramError(TracingError):
    """Raised for a graph that cannot run as a program on a device, and runs on the tape; the message gives the reason."""


class NotCapturedError(Exception):
    """Raised for a graph that has a program, but none that can be captured; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class CudaProgram:
    """A program, its text, and what one call of it does."""

    program: Program
    text: str
    arrays: tuple[ArrayType, ...]
    kernels: int
    copies: int
    """Stores that copy their array, and results that are copies."""
    moved_bytes: int
    peak_bytes: int
    fallbacks: tuple[str, ...]
    state: DeviceState | None
    kept: tuple[tuple[str, ArrayType, bool], ...]
    """Memory that it keeps: name, type, and True for results."""
    transient: tuple[str, ...]
    """The rules that make arrays although it keeps its memory."""
    replayed: ReplayedProgram | None
    """The program, if it is one that is captured."""
    listings: tuple[tuple[str, Callable[[], str]], ...]
    """Kernels of each launch, by their name in the text, generated on demand."""
    kernel_stages: Callable[[], Sequence[tuple[str, str]]]
    """The kernels after each pass over kernels, and those of the bodies of loops and branches."""
    looks: bool = False
    """True if it waits at the end of a call, to look at positions (`bounds_checks.py`)."""


def write(graph: Graph, stages: Stages, on_device: Sequence[bool], device: torch.device, *, tier: str) -> CudaProgram:
    """The program of a graph whose inputs so flagged are device arrays. The others are of the host.

    One that keeps its memory is called with the tensors of a frame of its state before the inputs. One of the tier `native` that
    cannot be captured is that of `stateful`, and the reason is among the fallbacks.
    """
    try:
        loader = loader_for(device)
        bounds = bounds_of(graph, _on_device(graph, on_device))
        stages.add("positions", bounds.closed)
        return _written(bounds, graph, on_device, device, loader, (), tier)
    except DeviceError as reason:
        told = f"PyTorch computes nests, operation by operation: {reason}"
        stages.add("without kernels", graph)
        return _written(Bounds(graph), graph, on_device, device, None, (told,), tier)


def _written(
    bounds: Bounds,
    graph: Graph,
    on_device: Sequence[bool],
    device: torch.device,
    loader: Loader | None,
    reasons: tuple[str, ...],
    tier: str,
) -> CudaProgram:
    def attempt(*, captures: bool, reasons: tuple[str, ...]) -> CudaProgram:
        keeps = tier in KEEPING
        written = _Writer(bounds, on_device, device, loader, reasons, keeps=keeps, captures=captures).write()
        if not bounds.at_the_end:
            return written
        return replace(written, program=DeferredBoundsCheck(written.program, graph, keeps=keeps), looks=True)

    if tier != "native":
        return attempt(captures=False, reasons=reasons)
    why: object = "CUDA_LAUNCH_BLOCKING is 1, so that each kernel is waited for"
    if not is_blocking():
        try:
            return attempt(captures=True, reasons=reasons)
        except NotCapturedError as reason:
            why = reason
    return attempt(captures=False, reasons=(*reasons, f"runs step by step, not as a CUDA graph: {why}"))


@cache
def loader_for(device: torch.device) -> Loader:
    """The loader of kernels for a device: its driver's, or in memory of the host the emulator."""
    if (obstacle := availability.why_not()) is not None:
        raise DeviceError(obstacle)
    if device.type == "cpu":
        return emulated
    from pullback.backends.cuda.driver import driver  # noqa: PLC0415 - a library that machines without a GPU do not have

    return KernelLoader(driver(), device.index, architecture_of(device), stream_of(device))


def architecture_of(device: torch.device) -> str:
    """The architecture that kernels for a device are written for; in memory of the host the newest."""
    return "sm_80" if device.type != "cpu" and torch.cuda.get_device_capability(device)[0] < 9 else "sm_90"


def multiprocessors_of(device: torch.device) -> int:
    """The number of multiprocessors of a device; in memory of the host that of the newest."""
    if device.type == "cpu":
        return MULTIPROCESSORS
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def stream_of(device: torch.device) -> Callable[[], int]:
    """A function that gives the stream of PyTorch's that is current on a device; memory of the host has one."""
    if device.type == "cpu":
        return lambda: 0
    return partial(torch._C._cuda_getCurrentRawStream, device.index)  # noqa: SLF001 - it runs no Python, as current_stream does


@cache
def graphs_for(device: torch.device) -> Graphs:
    """The captures of a device: by its driver, or in memory of the host by a list of what was done."""
    if device.type == "cpu":
        return HostCapture()
    from pullback.backends.cuda.driver import driver  # noqa: PLC0415 - as above

    context = driver().context(device.index)
    return DriverCapture(
        driver(),
        context,
        stream_of(device),
        lambda: Lane(driver(), context, device),
        torch._C._cuda_isCurrentStreamCapturing,  # noqa: SLF001 - as above
    )


# --- the text ---------------------------------------------------------------------------------------------------------
class _Writer:
    """Names of values, and the namespace the text runs in."""

    def __init__(
        self,
        bounds: Bounds,
        on_device: Sequence[bool],
        device: torch.device,
        loader: Loader | None,
        reasons: Sequence[str],
        *,
        keeps: bool,
        captures: bool,
        results: Sequence[bool] | None = None,
        lines: list[str] | None = None,
    ) -> None:
        """For a body alone `results` are given, the outputs that it writes into memory of the device, and the `lines` before it."""
        self.bounds = bounds
        self.graph = bounds.graph
        self.device = device
        self.loader = loader
        self.keeps = keeps
        self.captures = captures
        self.multiprocessors = multiprocessors_of(device)
        self.results = results
        self.namespace: dict[str, Any] = {
            "GuardFailure": GuardFailure,
            "in_order": in_order,
            "array": _array,
            "put": self._put,
            "put_into": _put_into,
            "poison": _poison,
            "branch": branch,
            "join": join,
        }
        self.names: dict[Var, str] = {}
        self.stretched: set[str] = set()
        """Names of views in which one place stands for several elements."""
        self.transient: set[str] = set()
        self.ordered: set[str] = set()
        """Names of arrays that are in C order and aligned."""
        self.constants: dict[Var, Any] = {}
        """Values of the host that depend on no input."""
        self.on_both: dict[Var, str] = {}
        """By value of the host, the name of the same on the device."""
        self.text = Text()
        self.lines: list[str] = [] if lines is None else lines
        """The lines of the listing so far: bodies of loops and branches come before what runs them."""
        self.listings: list[tuple[str, Callable[[], str]]] = []
        self.stages: list[list[tuple[str, Kernels]]] = []
        """By part of the graph the kernels after each pass over kernels."""
        self.stages_of_bodies: list[tuple[str, Callable[[], Sequence[tuple[str, str]]]]] = []
        self.rows: set[Var] = set()
        """Whole numbers of the host by step, which a loop gives and others read row by row."""
        self.kernels = 0
        self.copies = 0
        self.launches = 0
        """Nodes that a run is in a graph: kernels, with those of every step of a loop."""
        self.moved_bytes = 0
        self.fallbacks = list(reasons)
        self.there = _on_device(self.graph, on_device, bounds.constants)
        self.found = Kernels((), Views({}))
        """The kernels of the part that is written."""
        self.read_last: dict[Atom, Kernel] = {}
        """By value of memory, the last of them that reads it."""
        self.own: set[Var] = set()
        """Values whose memory is nobody else's: made by kernels of ours, or copied where it was not."""

    def write(self) -> CudaProgram:
        graph, parameters = self.graph, self.parameters()
        for part, numbers in _parts(graph):
            self.part(part)
            self.check(numbers)
        outputs = self.outputs()
        there = [isinstance(atom, Var) and atom in self.there for atom in graph.outputs]
        returned = [f"array({name})" if is_there else name for name, is_there in zip(outputs, there, strict=True)]
        text = self.text
        if self.captures:
            text.divide()
            text.statements = branched(text.statements, text.root)
            returned = [name for name, is_there in zip(outputs, there, strict=True) if not is_there]
        lines = list(text.lines(outputs, poisons=self.keeps and is_poisoning()))
        ends = f"return ({''.join(f'{name}, ' for name in returned)})"
        if self.captures:
            begins = lines.index(WORK.text)
            work = [*([lines[0]] if text.kept else []), *lines[begins + 1 :], "return"]
            functions: dict[str, Sequence[str]] = {"prepare": [*lines[:begins], ends], "work": work}
        else:
            functions = {"program": [*lines, ends]}
        head = ", ".join(["frame"] * self.keeps + parameters)
        self.define(functions, head)
        seen = {text.root(name) for name in outputs}
        state = None
        if self.keeps:
            state = DeviceState(
                dict(enumerate(text.kept.values())),
                text.arena(outputs),
                self.device,
                stream_of(self.device),
                beside=Sets if self.captures else None,
            )
        replayed = self.replayed(outputs, there) if self.captures else None
        return CudaProgram(
            replayed or self.namespace["program"],
            "\n".join(self.lines),
            tuple(var.type for one in text.statements for var in one.made),
            self.kernels,
            self.copies,
            self.moved_bytes,
            text.peak_bytes(outputs),
            tuple(dict.fromkeys(self.fallbacks)),
            state,
            tuple((name, type_, name in seen) for name, type_ in text.kept.items()),
            tuple(sorted(self.transient)),
            replayed,
            tuple(self.listings),
            self.kernel_stages(),
        )

    def parameters(self) -> list[str]:
        """The names of a program's arguments, and the code that prepares them."""
        parameters = []
        for position, var in enumerate(self.graph.inputs):
            name = self.names[var] = f"in{position}"
            parameters.append(name)
            if (
                var in self.there
            ):  # an array around the function may hold something else on the next call: it is put each time
                if self.there[var]:
                    self.say((name,), f"{name}.tensor", (name,), by_pointer=True)
                else:
                    for look in self.bounds.of_host.get(var, ()):
                        function = f"look{len(self.namespace)}"
                        self.namespace[function] = look
                        self.say((), f"{function}({name})", (name,), of_host=True)
                    self.names[var] = self.put(var, name)
        for position, capture in enumerate(self.graph.captures):
            name = self.names[capture.var] = f"captured{position}"
            parameters.append(f"{name}_")
            self.namespace[name] = tensor_of(capture.value, self.device)
            self.ordered.add(name)
        self.name_constants()
        return parameters

    def name_constants(self) -> None:
        """Put the arrays on the device that are read besides what the graph is given."""
        for var, value in self.bounds.constants.items():
            name = self.names[var] = f"constant{len(self.namespace)}"
            self.namespace[name] = tensor_of(value, self.device)
            self.ordered.add(name)

    def body(self) -> Body:
        """The program of a body, all of whose inputs on the device are in order."""
        assert self.results is not None  # noqa: S101 - given for bodies
        graph, text = self.graph, self.text
        for position, var in enumerate(graph.inputs):
            self.names[var] = f"in{position}"
        self.ordered.update(self.names[var] for var in graph.inputs if var in self.there)
        self.name_constants()
        for part, _ in _parts(graph):
            self.part(part)
        outputs = self.outputs()
        if self.captures:
            text.statements = branched(text.statements, text.root)
        of_host = [name for name, is_there in zip(outputs, self.results, strict=True) if not is_there]
        lines = [*text.lines(outputs, poisons=is_poisoning()), f"return ({''.join(f'{name}, ' for name in of_host)})"]
        head = ", ".join(["frame", *(f"in{position}" for position in range(len(graph.inputs)))])
        self.define({"body": lines}, head)
        places = {name: place for place, name in enumerate(text.kept)}
        return Body(
            graph,
            self.namespace["body"],
            tuple(var in self.there for var in graph.inputs),
            tuple(text.kept.values()),
            text.arena(outputs),
            tuple(places[name] if own else None for name, own in zip(outputs, self.results, strict=True)),
            self.kernels,
            self.launches,
            self.moved_bytes,
            tuple(self.fallbacks),
            frozenset(self.transient),
            tuple(self.listings),
            self.kernel_stages(),
        )

    def kernel_stages(self) -> Callable[[], Sequence[tuple[str, str]]]:
        """A function that formats the kernels after each pass, first those of this graph, then those of its bodies."""
        graph, parts, bodies = self.bounds.closed, tuple(self.stages), tuple(self.stages_of_bodies)

        def stages() -> Sequence[tuple[str, str]]:
            of_bodies = [(f"{owner}: {name}", kernels) for owner, own in bodies for name, kernels in own()]
            return [*format_stages(graph, *parts), *of_bodies]

        return stages

    def define(self, functions: dict[str, Sequence[str]], head: str) -> None:
        """Define functions of these lines, numbered as in the listing, which they are added to."""
        written = "\n".join(
            "\n".join([f"def {name}({head}):", *(f"    {line}" for line in body)]) + "\n"
            for name, body in functions.items()
        )
        before = "\n" * len(self.lines)
        exec(compile(before + written, SOURCE, "exec"), self.namespace)  # noqa: S102 (our own text, of the names above)
        self.lines += written.split("\n")
        self.namespace[LINES] = self.lines

    def replayed(self, outputs: Sequence[str], there: Sequence[bool]) -> ReplayedProgram:
        """The program in two parts as one that is captured."""
        text, places = self.text, {name: place for place, name in enumerate(self.text.kept)}
        statements = [one for one in text.statements if not (one.of_host or one.by_pointer)]
        try:
            graphs = graphs_for(self.device)
        except DeviceError as reason:
            raise NotCapturedError(str(reason)) from None
        return ReplayedProgram(
            self.namespace["prepare"],
            self.namespace["work"],
            graphs,
            inputs=[(f"in{number}", number) for number, var in enumerate(self.graph.inputs) if self.there.get(var)],
            count=len(self.graph.inputs) + len(self.graph.captures),
            results=[(name, places[name]) if is_there else None for name, is_there in zip(outputs, there, strict=True)],
            is_whole=not (self.bounds.at_the_end or any(one.of_host for one in text.statements)),
            fixed={text.root(name) for one in statements for name in (*one.targets, *one.used)},
        )

    def outputs(self) -> list[str]:
        """The names of what is returned. A program that keeps its memory copies what is not, or not alone, in memory of its own."""
        names, seen = [], set[str]()
        made, is_body = set(self.text.kept), self.results is not None
        if not (self.captures or is_body):
            made.update(name for one in self.text.statements if one.made for name in one.targets)
        for number, atom in enumerate(self.graph.outputs):
            is_there = isinstance(atom, Var) and atom in self.there
            is_wanted = self.results is not None and self.results[number]
            name = self.given(atom) if is_wanted and not is_there else self.operand(atom)
            if is_there or is_wanted:
                root = self.text.root(name)
                is_own = root in made and root not in seen and name not in self.stretched
                is_own = is_own and not ((self.captures or is_body) and name != root)
                if (self.keeps and not is_own) or root.startswith("captured"):
                    name = self.copied(name, f"out{number}", atom)
                seen.add(self.text.root(name))
            names.append(name)
        return names

    def copied(self, name: str, own: str, atom: Atom) -> str:
        """The name of a copy."""
        self.copies += 1
        if self.keeps:
            self.keep(own, atom.type)
            self.say((own,), f"{own}.copy_({name})", (name,), writes=True)
        else:
            self.say((own,), f"{name}.clone()", (name,), made=(atom,) if isinstance(atom, Var) else ())
        return own

    def keep(self, name: str, type_: ArrayType) -> str:
        """A name of memory that is kept."""
        self.text.kept[name] = ArrayType(type_.shape, type_.dtype)
        self.ordered.add(name)
        return name

    def put(self, var: Var, name: str) -> str:
        """The name on the device of what `name` is on the host."""
        if self.captures and self.results is not None and var.type.shape:
            raise NotCapturedError("the host makes an array in each step of a loop")
        own = f"{name}_there"
        if self.keeps:
            self.keep(own, var.type)
            self.say((own,), f"put_into({own}, {name})", (name,), writes=True, of_host=True)
        else:
            self.say((own,), f"put({name}, {self.dtype(var)})", (name,))
            self.ordered.add(own)
        return own

    def say(self, targets: tuple[str, ...], text: str, used: tuple[str, ...], **more: Any) -> None:
        self.text.statements.append(Statement(targets, text, used, **more))

    # --- parts ----------------------------------------------------------------------------------------------------------
    def part(self, graph: Graph) -> None:
        """The statements of nodes between which no guard is checked."""
        for node in graph.nodes:
            if node.primitive.effect not in (
                Effect.NONE,
                Effect.READS,
            ):  # nothing writes, so it does not matter when it reads
                raise NoProgramError(
                    f"{node.primitive.name} writes to arrays or keeps state, which has no program on a device yet"
                )
        views = {node.outputs[0]: node for node in graph.nodes if is_view(node)}
        if self.loader is None:
            for node in graph.nodes:
                self.need(node.inputs, views)
                if node.outputs[0] not in self.names:
                    self.step(node)
            return
        grouping = KernelInput(graph, self.there, self.bounds.by_nests, self.writes_into)
        self.stages.append(list(grouping.stages()))
        found = self.stages[-1][-1][1]
        self.found, kept = found, kept_values(found, graph)
        self.read_last = {
            found.views.access(atom).root: kernel
            for kernel in found.kernels
            for node in nodes_of(kernel)
            for atom in node.inputs
        }
        for kernel in found.kernels:
            self.kernel(kernel, kept, views, self.loader)
        self.need(graph.outputs, views)

    def kernel(self, kernel: Kernel, kept: Collection[Var], views: dict[Var, Node], loader: Loader) -> None:
        """The statement of a kernel, if it has anything to do."""
        if isinstance(kernel, FusedNodes):
            copied = join_of(kernel)
            if copied is None or moves_of(copied, self.found.views, is_over=False):
                self.nest(kernel, kept, loader)
        elif isinstance(kernel, SingleNode):
            node, is_over = kernel.node, self.is_over(kernel)
            if node.outputs[0] in self.there and is_moved(node, is_over=is_over):
                self.move(node, loader, is_over=is_over)
            elif self.recurs(node):
                self.recurrence(node, views, loader)
            else:
                self.need(node.inputs, views)
                self.step(node, is_over=is_over)

    def need(self, atoms: Sequence[Atom], views: dict[Var, Node]) -> None:
        """Say the views among values, and those that lie in other ones, if they have not been said."""
        for atom in atoms:
            if isinstance(atom, Var) and atom not in self.names:
                if atom not in views:
                    self.look(atom)
                    continue
                if self.turns(views[atom]):
                    continue
                self.need(views[atom].inputs, views)
                self.step(views[atom])

    def turns(self, node: Node) -> bool:
        """True if a view that is read back to front, which PyTorch has none of, has become a copy by a kernel of ours."""
        (view,), root = node.outputs, self.found.views.access(node.outputs[0]).root
        if (
            not _turns_round(node)
            or self.loader is None
            or view.type.dtype not in DTYPES
            or not view.type.size
            or root not in self.there
        ):
            return False
        own = Var(view.index, view.type)
        self.move(Node(copy, (view,), (), (own,), node.source), self.loader, is_over=False)
        self.names[view] = self.names[own]
        return True

    # --- nests ----------------------------------------------------------------------------------------------------------
    def nest(self, kernel: FusedNodes, kept: Collection[Var], loader: Loader) -> None:
        """The launches of a nest."""
        names = ", ".join(node.primitive.name for node in kernel.nodes)
        made = {var for node in kernel.nodes for var in node.outputs}
        self.launch([nest_of(kernel, self.found.views, kept)], made, "nest", f"{list(kernel.space)}: {names}", loader)

    def launch(self, nests: Sequence[Move], results: Collection[Var], what: str, note: str, loader: Loader) -> None:
        """The launches of nests, of which several are one kernel. `results` are made by them alone, in memory of their own."""
        accesses = dict.fromkeys(access.root for _, operands in nests for access in operands)
        roots = [root for root in accesses if isinstance(root, Var)]
        made = [root for root in roots if root in results and root not in self.names]
        written = {operands[one.pointer].root for nest, operands in nests for one in nest.writes}
        written |= {operands[one.pointer].root for nest, operands in nests for one in nest.reductions}
        for root in roots:
            if root in written and root not in made and root not in self.names:
                self.allocate(root)
        placed = [
            (nest, [Place(roots.index(one.root), one.offset * one.dtype.itemsize) for one in operands])  # type: ignore[arg-type]
            for nest, operands in nests
        ]
        kernels = write_kernels(*placed[0]) if len(placed) == 1 else write_together(placed)
        self.run_kernels(kernels, roots, made, written, what, note, loader)

    def run_kernels(
        self,
        kernels: WrittenKernels,
        roots: Sequence[Var],
        made: Sequence[Var],
        written: Collection[Any],
        what: str,
        note: str,
        loader: Loader,
    ) -> None:
        """The statement that launches kernels whose pieces are the memory of `roots`, of which they make or write some."""
        read = ["" if root in made else self.in_order(root) for root in roots]
        function = f"{what}{len(self.namespace)}"
        launch = loader(kernels)
        self.listings.append((function, partial(listing, kernels, launch, architecture_of(self.device))))
        targets = tuple(self.name(var) for var in made)
        self.ordered.update(targets)
        self.own.update(made)
        self.kernels += len(kernels.kernels)
        self.launches += len(kernels.kernels)
        self.moved_bytes += kernels.moved_bytes
        count = len(kernels.kernels)
        note += f"; {count} kernel{'s' * (count > 1)}"
        if self.keeps:
            for name, var in zip(targets, made, strict=True):
                self.keep(name, var.type)
            between = [
                self.keep(f"{function}_{number}", ArrayType((nbytes,), np.dtype(np.uint8)))
                for number, nbytes in enumerate(kernels.scratch)
            ]
            pieces = [self.names[root] if root in made else name for root, name in zip(roots, read, strict=True)]
            # Of a body the names are others than those of what is captured, and all memory stays where it is.
            owners = ["" if self.results is not None else self.text.root(name) for name in (*pieces, *between)]
            self.namespace[function] = recording(launch, owners) if self.captures else _writes(launch)
            used = (*(name for name in read if name), *between)
            over = (*(name for root, name in zip(roots, read, strict=True) if name and root in written), *between)
            call = f"{function}({', '.join([*pieces, *between])})"
            self.say(targets, call, used, note=note, writes=True, by_pointer=True, over=over)
            return
        self.namespace[function] = _launches(
            launch, [var.type if var in made else None for var in roots], kernels.scratch, self.device
        )
        given = tuple(name for name in read if name)
        self.say(
            targets, f"{function}({', '.join(given)})", given, made=tuple(made), note=note, scratch=sum(kernels.scratch)
        )

    def in_order(self, var: Var) -> str:
        """The name of an array that kernels read."""
        if var not in self.there:
            if var not in self.on_both:
                self.on_both[var] = self.fixed(var) if var in self.constants else self.put(var, self.names[var])
            return self.on_both[var]
        name = self.names[var]
        if name not in self.ordered:
            is_given = name.startswith("in")  # what is captured is given in order, so that this gives it back
            self.say((name,), f"in_order({name})", (name,), by_pointer=is_given)
            self.ordered.add(name)
        return name

    def fixed(self, var: Var) -> str:
        """The name on the device of a constant."""
        name = f"{self.names[var]}_there"
        self.namespace[name] = tensor_of(np.asarray(self.constants[var], var.type.dtype), self.device)
        return name

    def dtype(self, var: Var) -> str:
        name = f"{var.type.dtype}_"
        self.namespace[name] = var.type.dtype
        return name

    # --- recurrences ------------------------------------------------------------------------------------------------------
    def recurs(self, node: Node) -> bool:
        """True for a recurrence on the device that is a kernel: of operands of one shape and dtype, in memory of its own."""
        if node.primitive is not linear_recurrence:
            return False
        a, b = (atom.type for atom in node.inputs)
        is_there = node.outputs[0] in self.there and all(isinstance(atom, Var) for atom in node.inputs)
        is_computed = a.dtype in DTYPES and a.dtype.kind == "f" and bool(a.size)
        return is_there and is_computed and (a.shape, a.dtype) == (b.shape, b.dtype)

    def recurrence(self, node: Node, views: dict[Var, Node], loader: Loader) -> None:
        """The launch of a recurrence."""
        (result,) = node.outputs
        operands = [atom for atom in node.inputs if isinstance(atom, Var)]
        self.need(operands, views)
        kernels = write_recurrence(result.type.shape, result.type.dtype, **dict(node.params))
        note = f"{result.type.shape[dict(node.params)['axis']]} steps of each line"
        self.run_kernels(kernels, (result, *operands), (result,), (result,), node.primitive.name, note, loader)

    # --- joins and stores -------------------------------------------------------------------------------------------------
    def is_over(self, kernel: SingleNode) -> bool:
        """True for a store into the memory of its array, which is the plan's own and is read by nothing behind the store."""
        array = array_of(kernel.node, self.found.views)
        if array is None or array not in self.own or self.found.taken.get(array) is not kernel.node:
            return False
        return self.read_last[array] is kernel

    def move(self, node: Node, loader: Loader, *, is_over: bool) -> None:
        """The launch of a join or a store; there is none where everything is in its place."""
        moves = moves_of(node, self.found.views, is_over=is_over)
        self.copies += node.primitive in STORES and not is_over
        if moves:
            made = () if is_over else node.outputs
            note = f"{' and '.join(str(list(nest.space)) for nest, _ in moves[:4])}{' …' * (len(moves) > 4)}: moved"
            self.launch(moves, made, node.primitive.name, note, loader)
        if is_over:
            self.name_over(node)

    def name_over(self, node: Node) -> str:
        """The name of the result of a store that is stored into its array: that of the array, or of another shape of it."""
        (result,), array = node.outputs, self.found.views.access(node.inputs[0])
        assert isinstance(array.root, Var)  # noqa: S101 - numbers are nobody's memory
        name = self.in_order(array.root)
        self.own.add(result)
        if array.root.type.shape != result.type.shape:
            name = self.look(result, array)
            self.ordered.add(name)
        self.names[result] = name
        return name

    def allocate(self, var: Var) -> str:
        """A name of memory that several steps write."""
        name = self.name(var)
        self.own.add(var)
        self.ordered.add(name)
        if self.keeps:
            return self.keep(name, var.type)
        function = f"empty{len(self.namespace)}"
        self.namespace[function] = partial(
            torch.empty, var.type.shape, dtype=torch_dtype(var.type.dtype), device=self.device
        )
        self.say((name,), f"{function}()", (), made=(var,))
        return name

    def is_part(self, node: Node) -> bool:
        """True for a node whose result lies in a joined array."""
        (result, *_), views = node.outputs, self.found.views
        return not is_view(node) and views.access(result).root is not result

    def look(self, var: Var, there: Access | None = None) -> str:
        """A name of a value that lies in the memory of another."""
        access = there or self.found.views.access(var)
        assert isinstance(access.root, Var)  # noqa: S101 - numbers are nobody's memory
        assert access.root is not var  # noqa: S101 - what is not named lies elsewhere
        root = self.names.get(access.root) or self.allocate(access.root)
        function = f"part{len(self.namespace)}"
        self.namespace[function] = _part(access.offset, var.type.shape, access.strides)
        name = self.name(var)
        self.say((name,), f"{function}({root})", (root,), sees=True)
        self.text.roots[name] = self.text.root(root)
        return name

    # --- single nodes -----------------------------------------------------------------------------------------------------
    def step(self, node: Node, *, is_over: bool = False) -> None:
        """The call of one node; `is_over`: a store into the memory of its array, if it can."""
        primitive = node.primitive
        if self.is_constant(node):
            self.compute(node)
            return
        is_there = node.outputs[0] in self.there
        if is_there and node.bodies():
            self.with_bodies(node)
            return
        # What a convolution reads it brings in order itself; done before it, the convolution is as free to move as a product is.
        is_ordered = self.captures and primitive.name in CONVOLUTIONS
        names = [
            self.in_order(atom)
            if isinstance(atom, Var) and is_there and (is_ordered or (atom not in self.there and atom.type.shape))
            else self.operand(atom)
            for atom in node.inputs
        ]
        used = tuple(name for name, atom in zip(names, node.inputs, strict=True) if isinstance(atom, Var))
        function = f"{primitive.name}{len(self.namespace)}"
        row = row_for(primitive)
        is_seen = is_there and row is not None and row.is_view
        is_made, is_part = is_there and not is_seen, self.is_part(node)
        into = self.row_into(node) if is_made and (self.keeps or is_part or is_over) else None
        is_over = is_over and into is not None
        self.copies += is_made and primitive in STORES and not is_over
        targets = self.targets(node, is_over=is_over)
        if is_made:
            self.kernels += 1
            self.launches += 1
            self.moved_bytes += sum(atom.type.nbytes for atom in (*node.inputs, *node.outputs))
        if into is not None:
            self.namespace[function] = into
            self.own.add(node.outputs[0])
            if not (is_part or is_over):
                self.keep(targets[0], node.outputs[0].type)
            text = f"{function}({', '.join([*targets, *names])})"
            self.say(targets, text, used, writes=True, may_branch=self.may_branch(node))
            return
        if self.captures and is_there and self.results is None:
            self.take_no_number(node)
        self.namespace[function] = self.application(node, is_there=is_there, is_seen=is_seen)
        if is_seen and isinstance(node.inputs[0], Var):
            self.see(primitive, targets[0], self.names[node.inputs[0]])
        if self.keeps and is_there and (not is_seen or _turns_round(node)):
            self.transient.add(primitive.name)
        self.say(
            targets,
            f"{function}({', '.join(names)})",
            used,
            made=node.outputs if is_made else (),
            unpacks=primitive.results > 1,
            of_host=not is_there,
            sees=is_seen and not _turns_round(node),
            may_branch=is_made and self.may_branch(node),
        )

    def may_branch(self, node: Node) -> bool:
        """True for a product that a graph may have beside another one."""
        return self.captures and is_small(node, self.multiprocessors)

    def targets(self, node: Node, *, is_over: bool) -> tuple[str, ...]:
        """The names of the results of a step: of a part of a joined array, of the array that is stored into, or new ones."""
        if self.is_part(node):
            return (self.look(node.outputs[0]),)
        return (self.name_over(node),) if is_over else tuple(self.name(var) for var in node.outputs)

    def application(self, node: Node, *, is_there: bool, is_seen: bool) -> Callable[..., Any]:
        """The function of a step that makes its results, or sees its operand as its result."""
        primitive, params = node.primitive, dict(node.params)
        if not is_there:
            return lambda *values: primitive.evaluate(*values, **params)  # numbers alone
        types = [atom.type for atom in node.inputs]
        applied = row_application(primitive, types, params, self.device) or self.through_face(node, params)
        if is_seen or not (self.keeps or node.outputs[0] in self.found.taken):
            return applied
        if primitive.results == 1:
            self.own.add(node.outputs[0])
        return _separate(applied)

    def see(self, primitive: Primitive, name: str, seen: str) -> None:
        """Note that a name is a view of what another one names."""
        self.text.roots[name] = self.text.root(seen)
        if primitive is broadcast_to or seen in self.stretched:
            self.stretched.add(name)
        if primitive is reshape and seen in self.ordered:
            self.ordered.add(name)

    def writes_into(self, node: Node) -> bool:
        """True if a call of PyTorch writes the result of a node into memory that is there."""
        return not self.recurs(node) and self.row_into(node) is not None

    def row_into(self, node: Node) -> Callable[..., None] | None:
        """The row that writes the result of a node into memory that is there, if it has one."""
        params = dict(node.params)
        if all(isinstance(x, Var) and (x in self.there or x.type.shape) for x in node.inputs):
            return row_into(node.primitive, [atom.type for atom in node.inputs], params)
        return into_at_numbers(node.primitive, params) if self.has_known_positions(node, params.get("key")) else None

    def has_known_positions(self, node: Node, key: Any) -> bool:
        """True if a read or store is at numbers of the host, of a graph at the same in every run."""
        count = sum(isinstance(part, str) for part in key) if isinstance(key, tuple) else 0
        arrays, positions = node.inputs[: len(node.inputs) - count], node.inputs[len(node.inputs) - count :]
        is_settled, is_set = self.results is not None or not self.captures, node.primitive is set_at
        return (
            count > 0
            and all(
                atom in self.there or bool(atom.type.shape) or (number > 0 and not isinstance(atom, Var) and is_set)
                for number, atom in enumerate(arrays)
            )
            and not any(atom.type.shape or (isinstance(atom, Var) and atom in self.there) for atom in positions)
            and all(is_settled or not isinstance(atom, Var) or atom in self.constants for atom in positions)
        )

    def take_no_number(self, node: Node) -> None:
        """Refuse to capture a step to which the host gives a number of the call: it would be that of the first."""
        for atom in node.inputs:
            if isinstance(atom, Var) and not (atom in self.there or atom in self.constants or atom.type.shape):
                raise NotCapturedError(f"{node.primitive.name} is given a number by the host on each call")

    def is_constant(self, node: Node) -> bool:
        """True if a node of the host depends on no input; what is returned to a caller is made anew each time."""
        known = all(not isinstance(atom, Var) or atom in self.constants for atom in node.inputs)
        returned = () if self.results is not None else self.graph.outputs
        return known and not any(var in self.there or var in returned for var in node.outputs)

    def compute(self, node: Node) -> None:
        """Compute a constant now."""
        values = [self.constants[atom] if isinstance(atom, Var) else atom.value for atom in node.inputs]
        made = node.primitive.evaluate(*values, **dict(node.params))
        for var, value in zip(node.outputs, made if node.primitive.results > 1 else (made,), strict=True):
            name = self.names[var] = f"constant{len(self.namespace)}"
            self.namespace[name] = self.constants[var] = value

    def through_face(self, node: Node, params: dict[str, Any]) -> Callable[..., Any]:
        """A step by the primitives that its own is made of, or by the host."""
        primitive = node.primitive
        there = [atom in self.there or (isinstance(atom, Var) and bool(atom.type.shape)) for atom in node.inputs]
        if self.captures and not is_composed(
            primitive
        ):  # where it has a decomposition, steps of that may be the host's
            where = "may run" if primitive.lower is not None else "runs"
            raise NotCapturedError(f"{primitive.name} {where} on the host")
        if primitive.lower is None and not is_composed(primitive):
            told = f"{primitive.name} runs on the host: its operands are fetched, its results put back"
            self.fallbacks.append(told)
        several = primitive.results > 1
        has_numbers = any(atom.type.weak and is_there for atom, is_there in zip(node.inputs, there, strict=True))

        def apply(*operands: Any) -> Any:
            wrapped = [DeviceArray(DEVICE, x) if own else x for x, own in zip(operands, there, strict=True)]
            made = DEVICE.apply(primitive, wrapped, params)
            results = [part.tensor for part in (made if several else (made,))]
            if has_numbers:  # which are arrays there, and may have given a wider dtype
                results = [x.to(torch_dtype(var.type.dtype)) for x, var in zip(results, node.outputs, strict=True)]
            return tuple(results) if several else results[0]

        return apply

    # --- loops and branches -----------------------------------------------------------------------------------------------
    def with_bodies(self, node: Node) -> None:
        """The statement that runs a loop, a branch, or a body once."""
        params, function = dict(node.params), f"{node.primitive.name}{len(self.namespace)}"
        if node.primitive is scan:
            self.scan(node, function, Layout(params))
        elif node.primitive is while_:
            self.while_(node, function, params["condition"], params["body"], params["consts"])
        elif node.primitive is switch:
            self.switch(node, function, params["branches"])
        elif node.primitive is checkpointed:
            bodies = [self.body_of(function, params["body"], self.of_host(node.inputs))]
            self.run(node, function, Branches(bodies), bodies, node.inputs)
        else:
            raise NoProgramError(f"{node.primitive.name} has no program on a device yet")

    def scan(self, node: Node, function: str, layout: Layout) -> None:
        """A scan: its body once, whatever the number of steps."""
        of_host = self.of_host(node.inputs, layout.x_inputs)
        results = self.settle(layout.body, of_host, layout.carry_inputs)
        made = _results_of(layout.body, of_host)
        for number in layout.y_outputs:
            var = node.outputs[number]
            if not made[number] and var.type.dtype.kind in "iu" and self.is_read_by_rows(var):
                results[number] = False
                self.rows.add(var)
        body = self.body_of(function, layout.body, of_host, results)
        nodes = layout.length * body.launches
        if self.captures and nodes > MOST_NODES:
            raise NotCapturedError(
                f"a scan of {layout.length} steps would be {nodes} nodes of a graph, which has at most {MOST_NODES}"
            )
        self.run(node, function, Scan(layout, body), [body], node.inputs, steps=layout.length)

    def while_(self, node: Node, function: str, condition: Graph, body: Graph, consts: int) -> None:
        """A while loop, which looks at its condition before each step."""
        if self.captures:
            raise NotCapturedError("a while loop looks at its condition before each step")
        of_host = self.of_host(node.inputs)
        results = self.settle(body, of_host, range(consts, len(node.inputs)))
        test = self.body_of(function, condition, of_host, _results_of(condition, of_host))
        bodies = [test, self.body_of(function, body, of_host, results)]
        self.run(node, function, While(consts, *bodies), bodies, node.inputs)

    def switch(self, node: Node, function: str, branches: Sequence[Graph]) -> None:
        """A branch that is chosen by a look; of a graph both, if there are two and they move little."""
        index, *operands = node.inputs
        of_host = self.of_host(operands)
        bodies = [self.body_of(function, branch, of_host) for branch in branches]
        if isinstance(index, Var) and index in self.there and self.captures:
            is_condition = index.type.dtype.kind == "b" and len(bodies) == 2
            if not is_condition or sum(body.moved_bytes for body in bodies) > MOST_BRANCH_BYTES:
                raise NotCapturedError(
                    "a branch is chosen by a value that is on the device; a graph runs both branches of pb.cond, if "
                    f"they move at most {MOST_BRANCH_BYTES >> 20} MiB together"
                )
            self.run(node, function, BothBranches(bodies), bodies, operands, index=index)
            return
        if self.captures and self.results is None:
            self.take_no_number(replace(node, inputs=(index,)))
        self.run(node, function, Branches(bodies), bodies, operands, index=index)

    def of_host(self, operands: Sequence[Atom], rows: Collection[int] = ()) -> set[int]:
        """The positions of whole numbers that the host has, in a graph the same in every run, and of arrays of which each row is one."""
        captured = {capture.var for capture in self.graph.captures}
        is_settled = self.results is not None or not self.captures
        found = set()
        for number, atom in enumerate(operands):
            is_known = not isinstance(atom, Var) or atom in self.constants
            if number in rows:
                is_known = is_known or atom in captured or atom in self.rows
            else:
                is_known = is_known or (is_settled and atom not in self.there)
            if is_known and atom.type.dtype.kind in "iu" and len(atom.type.shape) == (number in rows):
                found.add(number)
        return found

    def is_read_by_rows(self, var: Var) -> bool:
        """True if nothing but scans reads a value, row by row."""
        readers = [node for node in self.graph.nodes if var in node.inputs]
        return var not in self.graph.outputs and all(
            node.primitive is scan
            and all(n in Layout(dict(node.params)).x_inputs for n, atom in enumerate(node.inputs) if atom is var)
            for node in readers
        )

    @staticmethod
    def settle(body: Graph, of_host: set[int], carried: Sequence[int]) -> list[bool]:
        """Leave what steps make on the device out of what the host has; gives the results of the body that lie there."""
        while True:
            made = _results_of(body, of_host)
            unknown = {number for number, is_there in zip(carried, made, strict=False) if is_there} & of_host
            if not unknown:
                return [number >= len(carried) or carried[number] not in of_host for number in range(len(made))]
            of_host -= unknown

    def body_of(
        self, function: str, graph: Graph, of_host: Collection[int], results: Sequence[bool] | None = None
    ) -> Body:
        """The program of a body of a function, whose inputs are on the device but for those of the host."""
        self.lines.append(f"# of {function}")
        there = [number not in of_host for number in range(len(graph.inputs))]
        own = [True] * len(graph.outputs) if results is None else results
        by_kernels = self.loader is not None
        writer = _Writer(
            bounds_of(graph, _on_device(graph, there), is_body=True) if by_kernels else Bounds(graph),
            there,
            self.device,
            self.loader,
            (),
            keeps=True,
            captures=self.captures,
            results=own,
            lines=self.lines,
        )
        return writer.body()

    def run(
        self,
        node: Node,
        function: str,
        runner: Scan | While | Branches,
        bodies: Sequence[Body],
        operands: Sequence[Atom],
        *,
        index: Atom | None = None,
        steps: int = 1,
    ) -> None:
        """The statement that calls a runner by the name of its function, with operands, and the index of a branch."""
        given = [
            self.given(atom) if is_there else self.had(atom)
            for atom, is_there in zip(operands, bodies[-1].there, strict=True)
        ]
        read = [name for name, atom in zip(given, operands, strict=True) if isinstance(atom, Var)]
        last = ""
        if index is not None:
            last = f", {self.operand(index)}"
            read += [self.operand(index)] if isinstance(index, Var) else []
        targets = tuple(self.name(var) for var in node.outputs)
        own = [name for name, var in zip(targets, node.outputs, strict=True) if var not in self.rows]
        of_host = [name for name in targets if name not in own]
        self.ordered.update(own)
        self.own.update(var for var in node.outputs if var not in self.rows)
        self.listings += [(f"{name} of {function}", text) for body in bodies for name, text in body.listings]
        self.stages_of_bodies += [
            (f"body {number} of {function}", body.kernel_stages) for number, body in enumerate(bodies, 1)
        ]
        self.fallbacks += [reason for body in bodies for reason in body.fallbacks]
        if self.keeps:
            self.transient.update(*(body.transient for body in bodies))
        self.kernels += sum(body.kernels for body in bodies)
        self.launches += steps * sum(body.launches for body in bodies)
        self.moved_bytes += steps * sum(body.moved_bytes for body in bodies)
        note = f"{steps} steps" if node.primitive is scan else ""
        operands_text = f"({''.join(f'{name}, ' for name in given)})"
        if self.keeps:
            for name, var in zip(targets, node.outputs, strict=True):
                if var not in self.rows:
                    self.keep(name, var.type)
            block = self.keep(f"{function}_block", ArrayType((runner.nbytes,), np.dtype(np.uint8)))
            self.namespace[function] = runner
            text = f"{function}(({''.join(f'{name}, ' for name in own)}), {block}, {operands_text}{last})"
            text = f"{''.join(f'{name}, ' for name in of_host)}{'= ' if of_host else ''}{text}"
            self.say(targets, text, (*read, block), note=note, writes=True)
            return
        made = tuple(var for var in node.outputs if var not in self.rows)
        self.namespace[function] = _allocating(runner, [var.type for var in made], self.device)
        self.say(
            (*own, *of_host),
            f"{function}({operands_text}{last})",
            tuple(read),
            made=made,
            note=note,
            unpacks=True,
            scratch=runner.nbytes,
        )

    def had(self, atom: Atom) -> str:
        """The name on the host of what a body is given there: of what is captured a copy."""
        if isinstance(atom, Var) and atom in self.there and atom not in self.rows:
            value = next(capture.value for capture in self.graph.captures if capture.var is atom)
            name = f"constant{len(self.namespace)}"
            self.namespace[name] = np.array(value)
            return name
        return self.operand(atom)

    def given(self, atom: Atom) -> str:
        """The name on the device, in order, of what a body is given, or gives and has on the host."""
        if not isinstance(atom, Var):
            name = f"constant{len(self.namespace)}_there"
            self.namespace[name] = tensor_of(np.asarray(atom.value, atom.type.dtype), self.device)
            return name
        if self.keeps and atom in self.there:
            name = self.names[atom]
            if name not in self.ordered and self.text.root(name) != name:
                self.names[atom] = self.copied(name, f"{name}_own", atom)
        return self.in_order(atom)

    # --- names ----------------------------------------------------------------------------------------------------------
    def name(self, var: Var) -> str:
        """A new name."""
        name = self.names[var] = f"v{len(self.names)}"
        return name

    def operand(self, atom: Atom) -> str:
        if isinstance(atom, Var):
            return self.names[atom]
        if (atom.type.weak and type(atom.value) in (int, bool)) or (
            type(atom.value) is float and np.isfinite(atom.value)
        ):
            return f"({atom.value!r})"
        name = f"c{len(self.namespace)}"
        self.namespace[name] = atom.value
        return name

    def check(self, numbers: Sequence[int]) -> None:
        """Leave the program where a guarded value looks otherwise than it did while recording."""
        for number in numbers:
            guard = self.graph.guards[number]
            if isinstance(guard.atom, Var):
                name = self.names[guard.atom]
                if self.captures and guard.atom in self.there:
                    raise NotCapturedError(f"the function looks at a value that is on the device ({guard.atom.type})")
                seen = f"{type(guard.seen).__name__}({name})"
                self.say((), f"if {seen} != {guard.seen}: return GuardFailure({number}, {seen})", (name,), of_host=True)

    def _put(self, value: Any, dtype: np.dtype[Any] | None = None) -> torch.Tensor:
        host = np.asarray(value, dtype)
        if host.shape:
            return tensor_of(host, self.device)
        return torch.full(
            (), host.item(), dtype=torch_dtype(host.dtype), device=self.device
        )  # a kernel's argument: no transfer


def _array(tensor: torch.Tensor) -> DeviceArray:
    return DeviceArray(DEVICE, tensor)


def _put_into(there: torch.Tensor, value: Any) -> None:
    if np.ndim(value):
        there.copy_(tensor_of(value, _HOST))
    else:  # a kernel takes it as an argument
        there.fill_(np.asarray(value).item())


def _poison(*tensors: torch.Tensor) -> None:
    for tensor in tensors:
        tensor.view(-1).view(torch.uint8).fill_(0xFF)


def _part(offset: int, shape: Shape, strides: Sequence[int]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x.as_strided(shape, strides, x.storage_offset() + offset)


def _turns_round(node: Node) -> bool:
    """True if a view is a copy in PyTorch, which has no negative steps."""
    key = dict(node.params).get("key", ())
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, slice) and part.step is not None and part.step < 0 for part in parts)


# --- what the text calls ------------------------------------------------------------------------------------------------
def in_order(x: torch.Tensor) -> torch.Tensor:
    """An array as kernels read it: itself where it is one."""
    if is_in_order(x):
        return x
    own = x.resolve_conj().resolve_neg().contiguous()
    return own.clone() if own.data_ptr() % ALIGNMENT else own


def _launches(
    launch: Callable[[Sequence[int]], None],
    made: Sequence[ArrayType | None],
    scratch: Sequence[int],
    device: torch.device,
) -> Callable[..., Any]:
    """The call of a nest: pieces of memory that have a type are allocated, the others given."""
    allocated = [None if type_ is None else (type_.shape, torch_dtype(type_.dtype)) for type_ in made]
    is_alone = sum(type_ is not None for type_ in made) == 1

    def run(*read: torch.Tensor) -> Any:
        given = iter(read)
        pieces = [next(given) if own is None else torch.empty(own[0], dtype=own[1], device=device) for own in allocated]
        between = [torch.empty(nbytes, dtype=torch.uint8, device=device) for nbytes in scratch]
        launch([piece.data_ptr() for piece in (*pieces, *between)])
        results = [piece for piece, own in zip(pieces, allocated, strict=True) if own is not None]
        return results[0] if is_alone else results

    return run


def _allocating(
    runner: Scan | While | Branches, results: Sequence[ArrayType], device: torch.device
) -> Callable[..., Any]:
    """The call of a loop or branch in memory of PyTorch's pool."""
    empty = [(type_.shape, torch_dtype(type_.dtype)) for type_ in results]

    def run(operands: Sequence[Any], *index: Any) -> tuple[Any, ...]:
        made = tuple(torch.empty(shape, dtype=dtype, device=device) for shape, dtype in empty)
        block = torch.empty(runner.nbytes, dtype=torch.uint8, device=device)
        return (*made, *runner(made, block, operands, *index))

    return run


def _writes(launch: Callable[[Sequence[int]], None]) -> Callable[..., None]:
    """The call of a nest, all of whose pieces are given."""
    return lambda *pieces: launch([piece.data_ptr() for piece in pieces])


def _separate(apply: Callable[..., Any]) -> Callable[..., Any]:
    """An application whose results are no memory of an operand, which may be written to before they are read."""

    def own(made: torch.Tensor, operands: Sequence[Any]) -> torch.Tensor:
        begin = made.untyped_storage().data_ptr()
        shares = any(isinstance(x, torch.Tensor) and x.untyped_storage().data_ptr() == begin for x in operands)
        return made.clone() if shares else made

    def run(*operands: Any) -> Any:
        made = apply(*operands)
        return tuple(own(part, operands) for part in made) if isinstance(made, tuple) else own(made, operands)

    return run


# --- the graph ----------------------------------------------------------------------------------------------------------
def _on_device(graph: Graph, on_device: Sequence[bool], constants: Collection[Var] = ()) -> dict[Var, bool]:
    """The values that are on the device; False for inputs that are put there."""
    inputs = zip(graph.inputs, on_device, strict=True)
    there = {var: is_given for var, is_given in inputs if is_given or var.type.shape}
    there.update((var, True) for var in (*(capture.var for capture in graph.captures), *constants))
    for node in graph.nodes:
        if any(atom in there for atom in node.inputs):
            there.update(dict.fromkeys(node.outputs, True))
    return there


def _results_of(body: Graph, of_host: Collection[int]) -> list[bool]:
    """The results of a body that are computed on the device where those of its inputs are there that are not of the host."""
    there = _on_device(body, [number not in of_host for number in range(len(body.inputs))])
    return [isinstance(atom, Var) and atom in there for atom in body.outputs]


def _parts(graph: Graph) -> Iterator[tuple[Graph, Sequence[int]]]:
    """The graph in parts, and the guards that are checked after each: what comes after a guard is right only if it holds."""
    guards = graph.guards_after()
    outputs = {*graph.outputs, *(guard.atom for guard in graph.guards)}
    start = 0
    for end in sorted({*(position + 1 for position in guards), len(graph.nodes)}):
        nodes, after = graph.nodes[start:end], graph.nodes[end:]
        made = {var: None for node in nodes for var in node.outputs}
        later = outputs.union(*(node.inputs for node in after))
        inputs = dict.fromkeys(
            atom for node in nodes for atom in node.inputs if isinstance(atom, Var) and atom not in made
        )
        part = replace(
            graph,
            inputs=tuple(inputs),
            captures=(),
            nodes=nodes,
            outputs=tuple(var for var in made if var in later),
            guards=(),
        )
        yield part, guards.get(end - 1, ())
        start = end
