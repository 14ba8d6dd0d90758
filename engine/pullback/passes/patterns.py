"""Named rules found in plain NumPy, before the graph is differentiated.

    1 / (1 + exp(-z))    -> sigmoid(z)
    log1p(exp(z))        -> softplus(z)
    log(1 + exp(z))      -> softplus(z)

The rule's derivative is written from its result, so nothing between is kept and `act(w @ x + b)` lives in one array, as in
`pb.nn.dense_bias_act`; of ufuncs whose derivative is in terms of the result, like tanh, liveness finds that without help.
The rule evaluates in another way: the value is the same to rounding, and finite where the pattern overflows. A pattern
counts only where what is between has no other reader, and where nothing in the graph is overwritten.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from pullback.core.primitive import Primitive
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.rules.activations import sigmoid, softplus
from pullback.rules.elementwise import add, div, neg
from pullback.rules.exponential import exp, log, log1p
from pullback.simplification.rewriting import rewrite


def find_patterns(graph: Graph) -> Graph:
    """Put the named rules in place of what they are patterns of."""
    if any(node.primitive.effect.writes for node in graph.nodes):
        return graph
    atoms = (*(atom for node in graph.nodes for atom in node.inputs), *graph.ends())
    uses = Counter(atom for atom in atoms if isinstance(atom, Var))
    makers: dict[Var, Node] = {}

    def made_by(primitive: Primitive, atom: Atom) -> Node | None:
        """The node that makes an atom which has no other reader."""
        node = makers.get(atom) if isinstance(atom, Var) and uses[atom] == 1 else None
        return node if node is not None and node.primitive is primitive else None

    def step(node: Node) -> Node:
        for form, rule in PATTERNS.get(node.primitive.name, ()):
            z = form(node, made_by)
            if z is not None and _is_like(z, node):
                return replace(node, primitive=rule, inputs=(z,))
        makers.update((var, node) for var in node.outputs)
        return node

    return rewrite(graph, step)


MadeBy = Callable[[Primitive, Atom], Node | None]
Form = Callable[[Node, MadeBy], Atom | None]


def _sigmoid(node: Node, made_by: MadeBy) -> Atom | None:
    if not _is_one(node.inputs[0]):
        return None
    e = _one_plus_exp(node.inputs[1], made_by)
    minus = None if e is None else made_by(neg, e.inputs[0])
    return None if minus is None else minus.inputs[0]


def _softplus_log1p(node: Node, made_by: MadeBy) -> Atom | None:
    e = made_by(exp, node.inputs[0])
    return None if e is None else e.inputs[0]


def _softplus_log(node: Node, made_by: MadeBy) -> Atom | None:
    e = _one_plus_exp(node.inputs[0], made_by)
    return None if e is None else e.inputs[0]


PATTERNS: dict[str, tuple[tuple[Form, Primitive], ...]] = {
    div.name: ((_sigmoid, sigmoid),),
    log1p.name: ((_softplus_log1p, softplus),),
    log.name: ((_softplus_log, softplus),),
}


def _one_plus_exp(atom: Atom, made_by: MadeBy) -> Node | None:
    """The exponential in 1 + exp(…)."""
    total = made_by(add, atom)
    if total is None:
        return None
    for one, other in (total.inputs, total.inputs[::-1]):
        if _is_one(one):
            return made_by(exp, other)
    return None


def _is_one(atom: Atom) -> bool:
    return isinstance(atom, Literal) and atom.type.shape == () and bool(atom.value == 1)


def _is_like(z: Atom, node: Node) -> bool:
    """True if the rule gives what the pattern gives: a real array of the same type."""
    result = node.outputs[0].type
    return isinstance(z, Var) and z.type == result and bool(result.shape) and result.dtype.kind == "f"
