"""A graph as a straight line of rows: what the tier `fused` runs on a device.

Types are settled when the program is written, so a step is one call of PyTorch and nothing else, and every array is let go
after its last use: PyTorch's pool gives its memory to the next.

    def program(in0, in1):
        v0 = matmul0(in0, in1)
        v1 = tanh1(v0)
        del v0
        return (v1,)
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from pullback.backends.interpreter import Changed
from pullback.core.primitive import Effect
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.devices.cuda.eager import DEVICE, DeviceArray, is_composed
from pullback.devices.cuda.rows.table import ROWS
from pullback.devices.cuda.steps import row_application
from pullback.devices.cuda.values import tensor_of
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.planning.liveness import analyse

Program = Callable[..., Any]


class NoProgramError(Exception):
    """Raised for a graph that cannot run as a program on a device; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Written:
    """A program, its text, and what one call of it does."""

    program: Program
    text: str
    arrays: tuple[ArrayType, ...]
    kernels: int
    peak_bytes: int
    fallbacks: tuple[str, ...]


class _Writer:
    """Names of values, and the namespace the text runs in."""

    def __init__(self, graph: Graph, on_device: Sequence[bool], device: torch.device) -> None:
        self.graph = graph
        self.device = device
        self.namespace: dict[str, Any] = {"Changed": Changed}
        self.names: dict[Var, str] = {}
        self.lines: list[str] = []
        self.arrays: list[ArrayType] = []
        self.kernels = 0
        self.fallbacks: list[str] = []
        self.there = {var for var, is_there in zip(graph.inputs, on_device, strict=True) if is_there}

    def write(self) -> str:
        """The text."""
        graph = self.graph
        parameters = []
        for position, var in enumerate(graph.inputs):
            name = self.names[var] = f"in{position}"
            parameters.append(name)
            if var in self.there:
                self.lines.append(f"{name} = {name}.tensor")
            elif var.type.shape:  # an array around the function: it may hold something else on the next call
                self.lines.append(f"{name} = {self.bound('put', self._put)}({name})")
                self.there.add(var)
        for position, capture in enumerate(graph.captures):
            name = self.names[capture.var] = f"captured{position}"
            parameters.append(f"{name}_")
            self.namespace[name] = tensor_of(capture.value, self.device)
            self.there.add(capture.var)
        guards = graph.guards_after()
        self.check(guards.get(-1, ()))
        liveness = analyse(graph)
        for position, node in enumerate(graph.nodes):
            self.statement(node)
            inputs = {atom for atom in node.inputs if isinstance(atom, Var)}
            dead = [var for var in (*inputs, *node.outputs) if liveness.dies_at(var, position)]
            names = sorted({self.names[var] for var in dead if not self.names[var].startswith("captured")})
            self.check(guards.get(position, ()))
            if names:
                self.lines.append(f"del {', '.join(names)}")
        outputs = "".join(f"{self.returned(atom)}, " for atom in graph.outputs)
        head = f"def program({', '.join(parameters)}):"
        return "\n".join([head, *(f"    {line}" for line in [*self.lines, f"return ({outputs})"])]) + "\n"

    def statement(self, node: Node) -> None:
        primitive, params = node.primitive, dict(node.params)
        if node.bodies():
            raise NoProgramError(f"{primitive.name} is a loop or branch, which has no program on a device yet")
        if primitive.effect is not Effect.NONE:
            raise NoProgramError(f"{primitive.name} writes to arrays or keeps state, which has no program on a device")
        operands = [self.operand(atom) for atom in node.inputs]
        results = [f"v{len(self.names) + number}" for number in range(len(node.outputs))]
        function = f"{primitive.name}{len(self.namespace)}"
        if not any(atom in self.there for atom in node.inputs):
            self.namespace[function] = lambda *values: primitive.evaluate(*values, **params)  # numbers alone
        else:
            types = [atom.type for atom in node.inputs]
            application = row_application(primitive, types, params, self.device)
            if application is None:
                application = self.through_face(node, params)
            self.namespace[function] = application
            self.there.update(node.outputs)
            own = ROWS.get(primitive.name)
            if own is None or not own.is_view:
                self.kernels += 1
                self.arrays.extend(var.type for var in node.outputs)
        self.names.update(zip(node.outputs, results, strict=True))
        targets = ", ".join(results) + ("," if len(results) == 1 < primitive.results else "")
        self.lines.append(f"{targets} = {function}({', '.join(operands)})")

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

    def returned(self, atom: Atom) -> str:
        name = self.operand(atom)
        if isinstance(atom, Literal) or atom not in self.there:
            return name
        return f"{self.bound('array', _array)}({name})"

    def check(self, numbers: Sequence[int]) -> None:
        """Leave the program where a guarded value looks otherwise than it did while recording."""
        for number in numbers:
            guard = self.graph.guards[number]
            if isinstance(guard.atom, Var):
                seen = f"{type(guard.seen).__name__}({self.names[guard.atom]})"
                self.lines.append(f"if {seen} != {guard.seen}: return Changed({number}, {seen})")

    def bound(self, name: str, value: Any) -> str:
        self.namespace.setdefault(name, value)
        return name

    def _put(self, value: Any) -> torch.Tensor:
        return tensor_of(value, self.device)


def _array(tensor: torch.Tensor) -> DeviceArray:
    return DeviceArray(DEVICE, tensor)


def write(graph: Graph, on_device: Sequence[bool], device: torch.device) -> Written:
    """The program of a graph whose inputs so flagged are device arrays. The others are of the host."""
    writer = _Writer(graph, on_device, device)
    text = writer.write()
    code = compile(text, "<pullback program>", "exec")
    exec(code, writer.namespace)  # noqa: S102 (our own text, made of names and numbers above)
    return Written(
        writer.namespace["program"],
        text,
        tuple(writer.arrays),
        writer.kernels,
        _peak_bytes(graph, writer.there),
        tuple(dict.fromkeys(writer.fallbacks)),
    )


def _peak_bytes(graph: Graph, there: set[Var]) -> int:
    """Bytes of the arrays that the program makes, when most of them are alive."""
    liveness = analyse(graph)
    alive: dict[Var, int] = {}
    peak = 0
    for position, node in enumerate(graph.nodes):
        for var in node.outputs:
            if var in there and liveness.root(var) is var:
                alive[var] = var.type.nbytes
        peak = max(peak, sum(alive.values()))
        alive = {var: nbytes for var, nbytes in alive.items() if not liveness.dies_at(var, position)}
    return peak
