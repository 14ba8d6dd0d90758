"""The kernels of a native program on one page, for `plan.explain()`: what runs in which order, and where results go.

native program(a: f4[32,32], b: f4[32,32], c: f4[32,1]):
d = matmul a b                            arena+0
nest [32,32]
e = add d c
f = tanh e                              arena+0
g = square f
h = sum g {axes=(0, 1), keepdims=False} out0
"""

from collections.abc import Iterator

import numpy as np

from pullback.backends.native.epilogues import epilogue_of
from pullback.backends.native.kernel_passes import Grouping
from pullback.backends.native.memory import Memory
from pullback.backends.nests.fusing import Kernel, ProductWithEpilogue, nest_in, nodes_of
from pullback.backends.nests.views import Views
from pullback.ir.graph import Graph, Node, Var
from pullback.ir.printer import format_atom, show_param, value_names
from pullback.ir.strides import contiguous_strides

#: The type of an arena's elements.
BYTE = np.dtype(np.uint8)

_STATEMENT_WIDTH = 64


def format_kernels(memory: Memory) -> str:
    """The page."""
    graph = memory.graph
    names = value_names(graph)
    given = ", ".join(f"{names[var]}: {var.type}" for var in graph.inputs)
    lines = [f"native program({given}){', in registers' if memory.in_registers else ''}:"]
    for number, kernel in enumerate(memory.kernels.kernels):
        nest = nest_in(kernel)
        inner = "  " if nest is None else "    "
        if isinstance(kernel, ProductWithEpilogue):
            blocks = epilogue_of(kernel, memory.kernels.views, memory.kept).epilogue.blocks
            lines.append(f"  matmul with epilogue {list(kernel.nest.space)} in {blocks} blocks")
        elif nest is not None:
            lines.append(f"  nest {list(nest.space)}")
        for node in nodes_of(kernel):
            statement = f"{inner}{_statement(node, names)}"
            places = ", ".join(_places(node, memory, names))
            lines.append(f"{statement:<{_STATEMENT_WIDTH}} {places}".rstrip())
        if number in memory.scratch:
            lines[-1] += f" scratch arena+{memory.scratch[number]}"
    lines.extend(f"  copy {format_atom(graph.outputs[number], names)} -> out{number}" for number in memory.copied)
    return "\n".join(lines)


def stages_of_kernels(graph: Graph, vector_bits: int) -> list[tuple[str, str]]:
    """The kernels after each pass over kernels, one a line, and values that have no memory of their own in C order."""
    names = value_names(graph)
    return [
        (name, "\n".join(_kernel(kernel, found.views, names) for kernel in found.kernels) or "no kernel")
        for name, found in Grouping(graph, vector_bits).stages()
    ]


def _kernel(kernel: Kernel, views: Views, names: dict[Var, str]) -> str:
    values = [var for node in nodes_of(kernel) for var in node.outputs]
    layouts = "".join(_layout(var, views, names) for var in values)
    nest = nest_in(kernel)
    if nest is None:
        return _statement(next(nodes_of(kernel)), names) + layouts
    kind = "matmul with epilogue" if isinstance(kernel, ProductWithEpilogue) else "nest"
    return f"{kind} {list(nest.space)}: {' '.join(names[var] for var in values)}{layouts}"


def _layout(var: Var, views: Views, names: dict[Var, str]) -> str:
    access = views.access(var)
    if access.root is not var:
        return f"; {names[var]} in {format_atom(access.root, names)}"
    in_order = access.strides == contiguous_strides(var.type.shape)
    return "" if in_order else f"; {names[var]} with strides {list(access.strides)}"


def _statement(node: Node, names: dict[Var, str]) -> str:
    params = ", ".join(f"{key}={show_param(value)}" for key, value in node.params if not node.bodies())
    operands = " ".join(format_atom(atom, names) for atom in node.inputs)
    shown = f" {{{params}}}" if params else ""
    return f"{', '.join(names[var] for var in node.outputs)} = {node.primitive.name} {operands}{shown}"


def _places(node: Node, memory: Memory, names: dict[Var, str]) -> Iterator[str]:
    for var in node.outputs:
        if var in memory.returned:
            yield f"out{memory.returned[var]}"
        elif var in memory.offsets:
            yield f"arena+{memory.offsets[var]}"
        elif (root := memory.kernels.views.access(var).root) is not var:
            yield f"in {format_atom(root, names)}"
