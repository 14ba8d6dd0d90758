"""Panels: a large matrix that every step multiplies by, cut into bundles of columns with separate memory.

    scan b x {…}                       c = copy (the columns of b, 32 by 32)         f4[512,2048] as f4[64,512,32]
      body(b, h, x):             ->    scan c x {…}
        z = matmul h b                   body(c, h, x):
                                           z = matmul h c, the bundles side by side

Kernels of products hold a few columns of the result in registers and run down these columns of the matrix. Where its rows are
kilobytes apart that is a page of memory and a far line in every row, or a copy made again in every step. Rows of a panel
follow each other: 32 x 512 x 2048 in single precision takes 0.61 ms instead of 0.9, 109 of 112 billion operations a second.
Of a matrix that stays in the second cache nothing is gained.

The product of all panels is (panels, rows, width), and the result is (rows, panels x width): the copy from the one to
the other is one that a backend can elide, by having the product written to the result.
"""

from collections.abc import Mapping
from dataclasses import replace

from pullback.control.scan_rule import Layout, scan
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.loops.form import applied
from pullback.rules.contractions import matmul
from pullback.rules.inplace import copy
from pullback.rules.shapes import reshape, transpose

#: Bytes of a row of a panel: two of the widest vectors, so that with eight rows of the other factor a tile fills the registers.
ROW_BYTES = 128

#: A matrix of more bytes does not stay in the second cache from step to step.
_LEAST_BYTES = 1 << 18

#: So many rows have to be multiplied, all steps together, before copying is nothing beside them.
_LEAST_ROWS = 128


def lay_in_panels(graph: Graph) -> Graph:
    """Cut the constants of every scan that are large and nothing but the right factor of products of several rows."""
    nodes: list[Node] = []
    for node in graph.nodes:
        inner = node.with_bodies(lay_in_panels)
        if node.primitive is scan:
            inner = _with_panels(inner, nodes)
        nodes.append(inner)
    return replace(graph, nodes=tuple(nodes))


def _with_panels(node: Node, before: list[Node]) -> Node:
    layout = Layout(dict(node.params))
    inputs: list[Atom] = list(node.inputs)
    cut: dict[Atom, Var] = {}
    for number in layout.const_inputs:
        matrix = layout.body.inputs[number]
        if isinstance(inputs[number], Var) and _pays(matrix, layout):
            inputs[number] = _panels(inputs[number], before, node.source)
            cut[matrix] = Var(-1, inputs[number].type)
    if not cut:
        return node
    body = _multiplied(layout.body, cut)
    params = {**dict(node.params), "body": body}
    return replace(node, inputs=tuple(inputs), params=tuple(sorted(params.items())))


def _pays(matrix: Var, layout: Layout) -> bool:
    """True if a constant of a loop is a matrix to be cut."""
    if len(matrix.type.shape) != 2 or matrix.type.dtype.kind != "f" or matrix.type.nbytes <= _LEAST_BYTES:
        return False
    if matrix.type.shape[1] % _width(matrix):
        return False
    readers = [node for node in layout.body.nodes if matrix in node.inputs]
    return (
        bool(readers)
        and not any(atom is matrix for atom in layout.body.outputs)
        and all(_is_product_of_rows(node, matrix, layout.length) for node in readers)
    )


def _is_product_of_rows(node: Node, matrix: Var, steps: int) -> bool:
    left = node.inputs[0]
    return (
        node.primitive is matmul
        and left is not matrix
        and len(left.type.shape) == 2
        and left.type.shape[0] > 1
        and steps * left.type.shape[0] >= _LEAST_ROWS
        and node.outputs[0].type.dtype == matrix.type.dtype
    )


def _width(matrix: Atom) -> int:
    return ROW_BYTES // matrix.type.dtype.itemsize


def _panels(matrix: Atom, before: list[Node], source: str) -> Var:
    rows, columns = matrix.type.shape
    width = _width(matrix)
    cut = applied(reshape, [matrix], source, shape=(rows, columns // width, width))
    transposed = applied(transpose, [cut.outputs[0]], source, axes=(1, 0, 2))
    packed = applied(copy, transposed.outputs, source)
    before += [cut, transposed, packed]
    return packed.outputs[0]


def _multiplied(body: Graph, cut: Mapping[Atom, Var]) -> Graph:
    """The body with products of panels."""
    nodes: list[Node] = []
    for node in body.nodes:
        panels = cut.get(node.inputs[1]) if node.primitive is matmul else None
        if panels is None:
            nodes.append(node)
            continue
        product = applied(matmul, [node.inputs[0], panels], node.source)
        beside = applied(transpose, product.outputs, node.source, axes=(1, 0, 2))
        straight = applied(copy, beside.outputs, node.source)
        joined = applied(reshape, straight.outputs, node.source, shape=node.outputs[0].type.shape)
        nodes += [product, beside, straight, replace(joined, outputs=node.outputs)]
    return replace(body, inputs=tuple(cut.get(var, var) for var in body.inputs), nodes=tuple(nodes))
