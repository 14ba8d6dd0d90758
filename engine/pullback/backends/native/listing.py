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

from pullback.backends.native.finishing import finish_of
from pullback.backends.native.fusing import FinishedProduct, nest_in, nodes_of
from pullback.backends.native.memory import Memory
from pullback.ir.graph import Node, Var
from pullback.ir.printer import format_atom, show_param, value_names

#: What an arena is made of.
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
        if isinstance(kernel, FinishedProduct):
            blocks = finish_of(kernel, memory.kernels.views, memory.kept).finished.blocks
            lines.append(f"  finished product {list(kernel.nest.space)} in {blocks} blocks")
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
