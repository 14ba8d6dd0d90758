"""Transposes of products: the factors change places instead, and the product is written in the order it is needed in.

c = matmul a b             ->    d = matmul (transpose b) (transpose a)
d = transpose c

Every element is the sum of the same products. Transposes of factors are views, which products read as they lie; a transpose of
a result has to be copied where it is needed in order.
"""

from collections import Counter
from dataclasses import replace

from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.loops.form import applied
from pullback.rules.contractions import matmul
from pullback.rules.shapes import transpose
from pullback.simplification.dead_code import drop_dead


def transpose_products(graph: Graph) -> Graph:
    """Take the transposes of matrices that are products and nothing else, inside loops and branches too."""
    uses = graph.uses()
    makers = {var: node for node in graph.nodes for var in node.outputs}
    nodes: list[Node] = []
    for node in graph.nodes:
        product = _transposed_product(node, makers, uses)
        if product is None:
            nodes.append(node.with_bodies(transpose_products))
            continue
        a, b = product.inputs
        factors = [applied(transpose, [factor], node.source, axes=(1, 0)) for factor in (b, a)]
        nodes += factors
        inputs = tuple(factor.outputs[0] for factor in factors)
        nodes.append(replace(product, inputs=inputs, outputs=node.outputs))
    return drop_dead(replace(graph, nodes=tuple(nodes)))


def _transposed_product(node: Node, makers: dict[Var, Node], uses: Counter[Atom]) -> Node | None:
    """The product of two matrices that a node is the transpose of."""
    operand = node.inputs[0] if node.primitive is transpose else None
    if not isinstance(operand, Var) or uses[operand] != 1 or dict(node.params)["axes"] != (1, 0):
        return None
    maker = makers.get(operand)
    is_product = maker is not None and maker.primitive is matmul and all(len(x.type.shape) == 2 for x in maker.inputs)
    return maker if is_product else None
