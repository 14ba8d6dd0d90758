"""A scan taken apart for passes: constants, carries, inputs per step and results per step."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

from pullback.control.scan_rule import scan
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var


@dataclass
class LoopCarry:
    """Something handed from step to step: its name in the body, what it starts with, what it becomes, its last value."""

    inside: Var
    start: Atom
    after: Atom
    last: Var


@dataclass
class Loop:
    """A scan. `consts` and `xs` are pairs of a name in the body and the operand, `ys` of an atom of the body and the result."""

    source: str
    length: int
    reverse: bool
    consts: list[tuple[Var, Atom]]
    carries: list[LoopCarry]
    xs: list[tuple[Var, Atom]]
    ys: list[tuple[Atom, Var]]
    nodes: list[Node]
    before: list[Node] = field(default_factory=list)
    behind: list[Node] = field(default_factory=list)
    replaced: dict[Atom, Atom] = field(default_factory=dict)
    """Results that are something else now."""

    @classmethod
    def of(cls, node: Node) -> "Loop":
        """The parts of a node."""
        params = dict(node.params)
        body: Graph = params["body"]
        consts, carries = params["consts"], params["carries"]
        pairs = list(zip(body.inputs, node.inputs, strict=True))
        return cls(
            node.source,
            params["length"],
            params["reverse"],
            pairs[:consts],
            [
                LoopCarry(inside, start, after, last)
                for (inside, start), after, last in zip(
                    pairs[consts : consts + carries], body.outputs, node.outputs, strict=False
                )
            ],
            pairs[consts + carries :],
            list(zip(body.outputs[carries:], node.outputs[carries:], strict=True)),
            list(body.nodes),
        )

    def written(self) -> list[Node]:
        """The node again, between those that go before and behind it."""
        inputs = [*self.consts, *((carry.inside, carry.start) for carry in self.carries), *self.xs]
        outputs = [*((carry.after, carry.last) for carry in self.carries), *self.ys]
        body = Graph(tuple(var for var, _ in inputs), (), tuple(self.nodes), tuple(atom for atom, _ in outputs))
        params = {
            "body": body,
            "carries": len(self.carries),
            "consts": len(self.consts),
            "length": self.length,
            "reverse": self.reverse,
        }
        node = Node(
            scan,
            tuple(atom for _, atom in inputs),
            tuple(sorted(params.items())),
            tuple(var for _, var in outputs),
            self.source,
        )
        return [*self.before, *([node] if outputs else []), *self.behind]

    def stack(self, atom: Atom) -> Var:
        """The values of all steps along a first axis: an operand, a result that is there, or a new one."""
        for inside, operand in self.xs:
            if inside is atom and isinstance(operand, Var) and not inside.type.weak:
                return operand
        for collected, result in self.ys:
            if collected is atom:
                return result
        stack = Var(-1, ArrayType((self.length, *atom.type.shape), atom.type.dtype))
        self.ys.append((atom, stack))
        return stack

    def read(self) -> set[Atom]:
        """The values that the body reads or gives."""
        return {
            *(atom for node in self.nodes for atom in node.inputs),
            *(carry.after for carry in self.carries),
            *(atom for atom, _ in self.ys),
        }


def rewrite_loops(graph: Graph, change: Callable[[Loop, set[Atom]], None]) -> Graph:
    """Offer every scan, taken apart, to `change(loop, read)` with what the rest of the graph reads."""
    read = set(graph.uses())
    nodes: list[Node] = []
    replaced: dict[Atom, Atom] = {}

    def current(atom: Atom) -> Atom:
        while atom in replaced:
            atom = replaced[atom]
        return atom

    for old in graph.nodes:
        node = replace(old, inputs=tuple(map(current, old.inputs)))
        if node.primitive is not scan:
            nodes.append(node)
            continue
        loop = Loop.of(node)
        change(loop, read)
        nodes += loop.written()
        replaced.update(loop.replaced)
    return graph.rewritten(nodes, current)


def applied(primitive: Primitive, inputs: Sequence[Atom], source: str, **params: Any) -> Node:
    """A new node, its types inferred."""
    types = primitive.infer(*(atom.type for atom in inputs), **params)
    outputs = tuple(Var(-1, type_) for type_ in types)
    return Node(primitive, tuple(inputs), tuple(sorted(params.items())), outputs, source)
