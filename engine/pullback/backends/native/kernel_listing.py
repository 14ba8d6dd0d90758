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

from pullback.backends.native.epilogues import epilogue_of
from pullback.backends.native.kernel_passes import KernelInput
from pullback.backends.native.memory import Memory
from pullback.backends.nests.fusion import ProductWithEpilogue, nest_in, nodes_of
from pullback.backends.nests.kernel_listing import format_stages, format_statement
from pullback.ir.graph import Graph, Node, Var
from pullback.ir.printer import format_atom, value_names

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
            statement = f"{inner}{format_statement(node, names)}"
            places = ", ".join(_places(node, memory, names))
            lines.append(f"{statement:<{_STATEMENT_WIDTH}} {places}".rstrip())
        if number in memory.scratch:
            lines[-1] += f" scratch arena+{memory.scratch[number]}"
    lines.extend(f"  copy {format_atom(graph.outputs[number], names)} -> out{number}" for number in memory.copied)
    return "\n".join(lines)


def stages_of_kernels(graph: Graph, vector_bits: int) -> list[tuple[str, str]]:
    """The kernels after each pass over kernels."""
    return format_stages(graph, KernelInput(graph, vector_bits).stages())


def _places(node: Node, memory: Memory, names: dict[Var, str]) -> Iterator[str]:
    for var in node.outputs:
        if var in memory.returned:
            yield f"out{memory.returned[var]}"
        elif var in memory.offsets:
            yield f"arena+{memory.offsets[var]}"
        elif (root := memory.kernels.views.access(var).root) is not var:
            yield f"in {format_atom(root, names)}"
