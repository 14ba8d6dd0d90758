"""A graph as a straight line of steps: what the tier `fused` runs on a device.

Nests of elementwise operations and sums are kernels of ours; every other node is one call of PyTorch, and views are views.
Types are settled when the program is written, and every array is let go after its last use: PyTorch's pool gives its memory to
the next.

    def program(in0, in1):
        in0 = in0.tensor
        in1 = in1.tensor
        v0 = matmul0(in0, in1)
        v1, v2 = nest1(v0)               # [100, 100]: tanh, square, sum
        del v0
        return (array(v2), array(v1), )

What a nest reads is in C order and aligned, which `in_order` sees to. Where kernels cannot be loaded, a nest is as many steps as it
has nodes, and the reason is among the fallbacks.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from pullback.backends.cuda.kernels.phases import Place
from pullback.backends.cuda.kernels.writing import write_kernels
from pullback.backends.cuda.launching import Loader, OnDevice, emulated
from pullback.backends.interpreter import Changed
from pullback.backends.llvm.writing.lanes import DTYPES
from pullback.backends.native import availability
from pullback.backends.nests.fusing import Alone, Fused, Kernels, fuse, kept_values, why_not_fused
from pullback.backends.nests.merging import merged
from pullback.backends.nests.nesting import nest_of
from pullback.backends.nests.sinking import sunk
from pullback.backends.nests.views import is_view
from pullback.core.primitive import Effect
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.devices.cuda.eager import DEVICE, DeviceArray, is_composed
from pullback.devices.cuda.rows.table import row_for
from pullback.devices.cuda.steps import row_application
from pullback.devices.cuda.values import tensor_of, torch_dtype
from pullback.errors import DeviceError, TracingError
from pullback.ir.graph import Atom, Graph, Node, Var

Program = Callable[..., Any]

#: Bytes that the beginning of an array is a multiple of, where kernels read it.
ALIGNMENT = 16


class NoProgramError(TracingError):
    """Raised for a graph that cannot run as a program on a device, and runs on the tape; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Written:
    """A program, its text, and what one call of it does."""

    program: Program
    text: str
    arrays: tuple[ArrayType, ...]
    kernels: int
    moved_bytes: int
    peak_bytes: int
    fallbacks: tuple[str, ...]


def write(graph: Graph, on_device: Sequence[bool], device: torch.device) -> Written:
    """The program of a graph whose inputs so flagged are device arrays. The others are of the host."""
    try:
        return _Writer(graph, on_device, device, loader_for(device)).write()
    except DeviceError as reason:
        return _Writer(
            graph, on_device, device, None, f"PyTorch computes nests, operation by operation: {reason}"
        ).write()


@cache
def loader_for(device: torch.device) -> Loader:
    """The loader of kernels for a device: its driver's, or in memory of the host the emulator."""
    if (obstacle := availability.why_not()) is not None:
        raise DeviceError(obstacle)
    if device.type == "cpu":
        return emulated
    from pullback.backends.cuda.driver import driver  # noqa: PLC0415 - a library that machines without a GPU do not have

    major, _ = torch.cuda.get_device_capability(device)
    stream = lambda: int(torch.cuda.current_stream(device).cuda_stream)  # noqa: E731
    return OnDevice(driver(), device.index, "sm_90" if major >= 9 else "sm_80", stream)


# --- the text ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Statement:
    """One line: the names that it gives values, those that it reads, and the values that it allocates arrays for."""

    targets: tuple[str, ...]
    text: str
    used: tuple[str, ...]
    made: tuple[Var, ...] = ()
    unpacks: bool = False
    """True if it gives a tuple, of one value even."""
    note: str = ""
    scratch: int = 0


@dataclass(slots=True)
class _Text:
    """The statements of a program, and how much memory they hold."""

    statements: list[_Statement] = field(default_factory=list)

    def lines(self, returned: Collection[str]) -> Iterator[str]:
        """The lines, with names let go after the last that reads them."""
        last: dict[str, int] = {}
        for position, one in enumerate(self.statements):
            last.update(dict.fromkeys((*one.targets, *one.used), position))
        for position, one in enumerate(self.statements):
            comma = "," if one.unpacks and len(one.targets) == 1 else ""
            head = f"{', '.join(one.targets)}{comma} = " if one.targets else ""
            yield f"{head}{one.text}" + (f"  # {one.note}" if one.note else "")
            gone = {name for name in (*one.targets, *one.used) if last[name] == position}
            if names := sorted(name for name in gone if name not in returned and not name.startswith("captured")):
                yield f"del {', '.join(names)}"

    def peak_bytes(self, roots: dict[str, str], returned: Collection[str]) -> int:
        """Bytes of the arrays that the program makes, when most of them are alive; a view keeps its root alive."""
        end = len(self.statements)
        last: dict[str, int] = {}
        for position, one in enumerate(self.statements):
            last.update((roots.get(name, name), position) for name in (*one.targets, *one.used))
        last.update((roots.get(name, name), end) for name in returned)
        alive: dict[str, int] = {}
        peak = 0
        for position, one in enumerate(self.statements):
            alive.update((name, var.type.nbytes) for name, var in zip(one.targets, one.made, strict=False))
            peak = max(peak, sum(alive.values()) + one.scratch)
            alive = {name: nbytes for name, nbytes in alive.items() if last[name] > position}
        return peak


class _Writer:
    """Names of values, and the namespace the text runs in."""

    def __init__(
        self, graph: Graph, on_device: Sequence[bool], device: torch.device, loader: Loader | None, reason: str = ""
    ) -> None:
        self.graph = graph
        self.device = device
        self.loader = loader
        self.namespace: dict[str, Any] = {"Changed": Changed, "in_order": in_order, "array": _array, "put": self._put}
        self.names: dict[Var, str] = {}
        self.roots: dict[str, str] = {}
        """By name of a view, that of what it is a view of."""
        self.ordered: set[str] = set()
        """Names of arrays that are in C order and aligned."""
        self.on_both: dict[Var, str] = {}
        """By value of the host, the name of the same on the device."""
        self.text = _Text()
        self.kernels = 0
        self.moved_bytes = 0
        self.fallbacks: list[str] = [reason] if reason else []
        self.there = _on_device(graph, on_device)

    def write(self) -> Written:
        graph = self.graph
        parameters = []
        for position, var in enumerate(graph.inputs):
            name = self.names[var] = f"in{position}"
            parameters.append(name)
            if (
                var in self.there
            ):  # an array around the function may hold something else on the next call: it is put each time
                is_given = self.there[var]
                self.say((name,), f"{name}.tensor" if is_given else f"put({name})", (name,))
        for position, capture in enumerate(graph.captures):
            name = self.names[capture.var] = f"captured{position}"
            parameters.append(f"{name}_")
            self.namespace[name] = tensor_of(capture.value, self.device)
            self.ordered.add(name)
        for part, numbers in _parts(graph):
            self.part(part)
            self.check(numbers)
        outputs = [self.operand(atom) for atom in graph.outputs]
        returned = [
            f"array({name})" if isinstance(atom, Var) and atom in self.there else name
            for atom, name in zip(graph.outputs, outputs, strict=True)
        ]
        lines = [*self.text.lines(outputs), f"return ({''.join(f'{name}, ' for name in returned)})"]
        text = "\n".join([f"def program({', '.join(parameters)}):", *(f"    {line}" for line in lines)]) + "\n"
        exec(compile(text, "<pullback program>", "exec"), self.namespace)  # noqa: S102 (our own text, of the names above)
        made = [var.type for one in self.text.statements for var in one.made]
        return Written(
            self.namespace["program"],
            text,
            tuple(made),
            self.kernels,
            self.moved_bytes,
            self.text.peak_bytes(self.roots, outputs),
            tuple(dict.fromkeys(self.fallbacks)),
        )

    def say(self, targets: tuple[str, ...], text: str, used: tuple[str, ...], **more: Any) -> None:
        self.text.statements.append(_Statement(targets, text, used, **more))

    # --- parts ----------------------------------------------------------------------------------------------------------
    def part(self, graph: Graph) -> None:
        """The statements of nodes between which no guard is checked."""
        for node in graph.nodes:
            if node.bodies():
                raise NoProgramError(f"{node.primitive.name} is a loop or branch, which has no program on a device yet")
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
        found = fuse(graph, belongs=self.belongs_to_nest)
        found = sunk(merged(found), graph)
        kept = kept_values(found, graph)
        for kernel in found.kernels:
            if isinstance(kernel, Fused):
                self.nest(kernel, found, kept, self.loader)
            elif isinstance(kernel, Alone):
                self.need(kernel.node.inputs, views)
                self.step(kernel.node)
        self.need(graph.outputs, views)

    def need(self, atoms: Sequence[Atom], views: dict[Var, Node]) -> None:
        """Say the views among values, if they have not been said."""
        for atom in atoms:
            if isinstance(atom, Var) and atom not in self.names:
                self.need(views[atom].inputs, views)
                self.step(views[atom])

    def belongs_to_nest(self, node: Node) -> bool:
        """True if a node is computed by a kernel of ours."""
        atoms = (*node.inputs, *node.outputs)
        return (
            node.outputs[0] in self.there
            and all(atom.type.dtype in DTYPES and atom.type.size for atom in atoms)
            and why_not_fused(node) is None
        )

    # --- nests ----------------------------------------------------------------------------------------------------------
    def nest(self, kernel: Fused, found: Kernels, kept: Collection[Var], loader: Loader) -> None:
        """The launches of a nest."""
        nest, operands = nest_of(kernel, found.views, kept)
        roots = [root for root in dict.fromkeys(access.root for access in operands) if isinstance(root, Var)]
        places = [Place(roots.index(access.root), access.offset * access.dtype.itemsize) for access in operands]  # type: ignore[arg-type]
        results = {var for node in kernel.nodes for var in node.outputs}
        made = [root for root in roots if root in results]
        read = [self.in_order(root) for root in roots if root not in results]
        function = f"nest{len(self.namespace)}"
        kernels = write_kernels(nest, places)
        self.namespace[function] = _launches(
            loader(kernels), [var.type if var in results else None for var in roots], kernels.scratch, self.device
        )
        targets = tuple(self.name(var) for var in made)
        self.ordered.update(targets)
        self.kernels += len(kernels.kernels)
        self.moved_bytes += kernels.moved_bytes
        names = ", ".join(node.primitive.name for node in kernel.nodes)
        count = len(kernels.kernels)
        self.say(
            targets,
            f"{function}({', '.join(read)})",
            tuple(read),
            made=tuple(made),
            note=f"{list(kernel.space)}: {names}; {count} kernel{'s' * (count > 1)}",
            scratch=sum(kernels.scratch),
        )

    def in_order(self, var: Var) -> str:
        """The name of an array that kernels read."""
        if var not in self.there:
            if var not in self.on_both:
                name = self.on_both[var] = f"{self.names[var]}_there"
                self.say((name,), f"put({self.names[var]}, {self.dtype(var)})", (self.names[var],))
                self.ordered.add(name)
            return self.on_both[var]
        name = self.names[var]
        if name not in self.ordered:
            self.say((name,), f"in_order({name})", (name,))
            self.ordered.add(name)
        return name

    def dtype(self, var: Var) -> str:
        name = f"{var.type.dtype}_"
        self.namespace[name] = var.type.dtype
        return name

    # --- single nodes -----------------------------------------------------------------------------------------------------
    def step(self, node: Node) -> None:
        """The call of one node."""
        primitive, params = node.primitive, dict(node.params)
        operands = [self.operand(atom) for atom in node.inputs]
        function = f"{primitive.name}{len(self.namespace)}"
        is_there = node.outputs[0] in self.there
        row = row_for(primitive)
        is_seen = is_there and row is not None and row.is_view
        if not is_there:
            self.namespace[function] = lambda *values: primitive.evaluate(*values, **params)  # numbers alone
        else:
            types = [atom.type for atom in node.inputs]
            application = row_application(primitive, types, params, self.device)
            self.namespace[function] = application or self.through_face(node, params)
        used = tuple(self.names[atom] for atom in node.inputs if isinstance(atom, Var))
        targets = tuple(self.name(var) for var in node.outputs)
        if is_seen and isinstance(node.inputs[0], Var):
            seen = self.names[node.inputs[0]]
            self.roots[targets[0]] = self.roots.get(seen, seen)
        elif is_there:
            self.kernels += 1
            self.moved_bytes += sum(atom.type.nbytes for atom in (*node.inputs, *node.outputs))
        self.say(
            targets,
            f"{function}({', '.join(operands)})",
            used,
            made=node.outputs if is_there and not is_seen else (),
            unpacks=primitive.results > 1,
        )

    def through_face(self, node: Node, params: dict[str, Any]) -> Callable[..., Any]:
        """A step by the primitives that its own is made of, or by the host."""
        primitive = node.primitive
        there = [atom in self.there for atom in node.inputs]
        if primitive.lower is None and not is_composed(primitive):
            self.fallbacks.append(f"{primitive.name} runs on the host: its operands are fetched, its results put back")
        several = primitive.results > 1

        def apply(*operands: Any) -> Any:
            wrapped = [DeviceArray(DEVICE, x) if own else x for x, own in zip(operands, there, strict=True)]
            made = DEVICE.apply(primitive, wrapped, params)
            return tuple(part.tensor for part in made) if several else made.tensor

        return apply

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
                seen = f"{type(guard.seen).__name__}({name})"
                self.say((), f"if {seen} != {guard.seen}: return Changed({number}, {seen})", (name,))

    def _put(self, value: Any, dtype: np.dtype[Any] | None = None) -> torch.Tensor:
        return tensor_of(np.asarray(value, dtype), self.device)


def _array(tensor: torch.Tensor) -> DeviceArray:
    return DeviceArray(DEVICE, tensor)


# --- what the text calls ------------------------------------------------------------------------------------------------
def in_order(x: torch.Tensor) -> torch.Tensor:
    """An array in C order whose elements are what they say, and whose beginning is aligned: itself where it is one."""
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


# --- the graph ----------------------------------------------------------------------------------------------------------
def _on_device(graph: Graph, on_device: Sequence[bool]) -> dict[Var, bool]:
    """The values that are on the device; False for inputs that are put there."""
    inputs = zip(graph.inputs, on_device, strict=True)
    there = {var: is_given for var, is_given in inputs if is_given or var.type.shape}
    there.update((capture.var, True) for capture in graph.captures)
    for node in graph.nodes:
        if any(atom in there for atom in node.inputs):
            there.update(dict.fromkeys(node.outputs, True))
    return there


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
