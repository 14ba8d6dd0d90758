"""Sums over a stack of products are one product, whose contracted axis goes through the stack.

    c = matmul a b    [4, 64, 32] [4, 32, 256]        a = reshape (transpose a)    [64, 128]
    s = sum c {axes=(0,)}                        ->   b = reshape b                [128, 256]
                                                      s = matmul a b

The gradient by a matrix that a stack of matrices is multiplied by is such a sum: as it is written, every place of the stack gives a
product as large as the matrix, and all of them are written down and read again. The terms are the same ones; they are added in
another order, with the bound of one sum of all of them. Factors become views; where one would have to be copied first, or is
repeated over the stack, the sum stays as it is.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.ir.strides import PlaceArray
from pullback.passes.layout_copies import places_of
from pullback.passes.loops.form import applied
from pullback.rules.contractions import matmul
from pullback.rules.reductions import sum_
from pullback.rules.shapes import reshape, transpose
from pullback.simplification.dead_code import drop_dead


def sum_within_products(graph: Graph) -> Graph:
    """Write every such sum as one product, inside loops and branches too."""
    uses = graph.uses()
    makers = {var: node for node in graph.nodes for var in node.outputs if uses[var] == 1}
    lying = places_of(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        summed = node.inputs[0] if node.primitive is sum_ else None
        product = makers.get(summed) if isinstance(summed, Var) else None
        if product is not None and product.primitive is matmul and _is_over_stack(node, product, lying):
            nodes += _one_product(node, product)
        else:
            nodes.append(node.with_bodies(sum_within_products))
    if all(new is old for new, old in zip(nodes, graph.nodes, strict=False)):
        return graph
    return drop_dead(replace(graph, nodes=tuple(nodes)))


def _is_over_stack(node: Node, product: Node, lying: dict[Atom, PlaceArray]) -> bool:
    """True if a sum is over axes of the stack, which both factors have, and factors need not be copied."""
    axes, (a, b), result = dict(node.params)["axes"], product.inputs, product.outputs[0]
    stack = result.type.shape[:-2]
    if not axes or len(a.type.shape) < 3 or a.type.shape[:-2] != stack or b.type.shape[:-2] != stack:
        return False
    if any(axis >= len(stack) for axis in axes) or node.outputs[0].type.dtype != result.type.dtype:
        return False
    for factor, order, shape in _views(node, product):
        try:
            np.reshape(np.transpose(lying[factor], order), shape, copy=False)
        except (KeyError, ValueError):
            return False
    return True


def _views(node: Node, product: Node) -> Iterator[tuple[Atom, tuple[int, ...], tuple[int, ...]]]:
    """Both factors, with the order of their axes and the shape that make them factors of one product."""
    axes, (a, b) = dict(node.params)["axes"], product.inputs
    kept = tuple(axis for axis in range(len(a.type.shape) - 2) if axis not in axes)
    rows, steps, columns = len(a.type.shape) - 2, len(a.type.shape) - 1, len(b.type.shape) - 1
    stack = tuple(a.type.shape[axis] for axis in kept)
    length = prod(a.type.shape[axis] for axis in (*axes, steps))
    yield a, (*kept, rows, *axes, steps), (*stack, a.type.shape[rows], length)
    yield b, (*kept, *axes, rows, columns), (*stack, length, b.type.shape[columns])


def _one_product(node: Node, product: Node) -> list[Node]:
    nodes: list[Node] = []
    factors = []
    for factor, order, shape in _views(node, product):
        nodes.append(applied(transpose, [factor], node.source, axes=order))
        nodes.append(applied(reshape, nodes[-1].outputs, node.source, shape=shape))
        factors.append(nodes[-1].outputs[0])
    nodes.append(applied(matmul, factors, node.source))
    nodes.append(
        replace(
            applied(reshape, nodes[-1].outputs, node.source, shape=node.outputs[0].type.shape), outputs=node.outputs
        )
    )
    return nodes
