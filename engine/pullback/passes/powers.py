"""Several whole powers of one value as products of each other.

    x**3, x**4, x**5     ->     x2 = x * x;  x3 = x2 * x;  x4 = x2 * x2;  x5 = x3 * x2

A power by itself is computed as exactly as the power function is. Several of one value, as polynomials have them and their
derivatives even more, share their products instead: x**k takes at most k - 1 roundings, each of half a unit in the last place,
so it is within (k - 1) / 2 units of the exact result. Bits differ from those of the power function, so only native plans, which
promise values within rounding, do this.
"""

from collections import defaultdict
from itertools import count
from typing import Any

from pullback.ir.graph import Graph, Literal, Node, Var
from pullback.rules.elementwise import mul, power, square

#: The highest power that is shared: its error is bounded by 7.5 units in the last place.
HIGHEST = 16


def share_powers(graph: Graph) -> Graph:
    """Rewrite powers of values that have several, inside loops and branches too."""
    exponents_of: dict[Var, set[int]] = defaultdict(set)
    for node in graph.nodes:
        base, exponent = _whole_power(node)
        if base is not None:
            exponents_of[base].add(exponent)
    shared = {base for base, exponents in exponents_of.items() if len(exponents - {2}) > 1}
    if not shared and not any(node.bodies() for node in graph.nodes):
        return graph
    numbers = count(1 + max((var.index for node in graph.nodes for var in (*node.outputs, *_vars(node))), default=-1))
    there: dict[tuple[Var, int], Var] = {}
    substitutes: dict[Var, Var] = {}
    nodes: list[Node] = []

    def current(atom: Any) -> Any:
        return substitutes.get(atom, atom) if isinstance(atom, Var) else atom

    def powered(base: Var, exponent: int, source: str) -> Var:
        """A variable for a power, made of lower ones where it is not there yet."""
        if exponent == 1:
            return base
        variable = there.get((base, exponent))
        if variable is None:
            half = exponent // 2
            factors = (powered(base, exponent - half, source), powered(base, half, source))
            variable = there[base, exponent] = Var(next(numbers), base.type)
            factorization = (mul, factors) if factors[0] is not factors[1] else (square, factors[:1])
            nodes.append(Node(factorization[0], factorization[1], (), (variable,), source))
        return variable

    for node in graph.nodes:
        base, exponent = _whole_power(node)
        if base in shared and base is not None:
            now = substitutes.get(base, base)
            substitutes[node.outputs[0]] = powered(now, exponent, node.source)
            continue
        nodes.append(node.reading(tuple(map(current, node.inputs))).with_bodies(share_powers))

    return graph.rewritten(nodes, current)


def _whole_power(node: Node) -> tuple[Var | None, int]:
    """The base and the exponent of a node that is a whole power of an array of floats."""
    nothing = (None, 0)
    if node.primitive not in (power, square) or not isinstance(node.inputs[0], Var):
        return nothing
    base, result = node.inputs[0], node.outputs[0].type
    if base.type != result or result.weak or result.dtype.kind != "f":
        return nothing
    if node.primitive is square:
        return base, 2
    exponent = node.inputs[1]
    if not isinstance(exponent, Literal) or isinstance(exponent.value, complex):
        return nothing
    whole = exponent.value == int(exponent.value) if abs(exponent.value) <= HIGHEST else False
    return (base, int(exponent.value)) if whole and exponent.value > 1 else nothing


def _vars(node: Node) -> list[Var]:
    return [atom for atom in node.inputs if isinstance(atom, Var)]
