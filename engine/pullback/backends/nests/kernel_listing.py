"""Kernels as text, for `plan.explain()`: one a line, and values that have no memory of their own in C order."""

from collections.abc import Iterable

from pullback.backends.nests.fusion import Kernel, Kernels, ProductWithEpilogue, nest_in, nodes_of
from pullback.backends.nests.views import Views
from pullback.ir.graph import Graph, Node, Var
from pullback.ir.printer import format_atom, show_param, value_names
from pullback.ir.strides import contiguous_strides


def format_stages(graph: Graph, *parts: Iterable[tuple[str, Kernels]]) -> list[tuple[str, str]]:
    """The kernels of a graph after each pass over those of its parts."""
    names = value_names(graph)
    stages = []
    for of_parts in zip(*parts, strict=True):
        lines = [_format_kernel(kernel, found.views, names) for _, found in of_parts for kernel in found.kernels]
        stages.append((of_parts[0][0], "\n".join(lines) or "no kernel"))
    return stages


def _format_kernel(kernel: Kernel, views: Views, names: dict[Var, str]) -> str:
    values = [var for node in nodes_of(kernel) for var in node.outputs]
    layouts = "".join(_layout(var, views, names) for var in values)
    nest = nest_in(kernel)
    if nest is None:
        return format_statement(next(nodes_of(kernel)), names) + layouts
    kind = "matmul with epilogue" if isinstance(kernel, ProductWithEpilogue) else "nest"
    return f"{kind} {list(nest.space)}: {' '.join(names[var] for var in values)}{layouts}"


def _layout(var: Var, views: Views, names: dict[Var, str]) -> str:
    access = views.access(var)
    if access.root is not var:
        return f"; {names[var]} in {format_atom(access.root, names)}"
    in_order = access.strides == contiguous_strides(var.type.shape)
    return "" if in_order else f"; {names[var]} with strides {list(access.strides)}"


def format_statement(node: Node, names: dict[Var, str]) -> str:
    """A node on one line, without the bodies of a loop."""
    params = ", ".join(f"{key}={show_param(value)}" for key, value in node.params if not node.bodies())
    operands = " ".join(format_atom(atom, names) for atom in node.inputs)
    shown = f" {{{params}}}" if params else ""
    return f"{', '.join(names[var] for var in node.outputs)} = {node.primitive.name} {operands}{shown}"
