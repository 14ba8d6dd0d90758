"""Recomputing: what one loop saves for another is computed there again, where that is a few sums and products of less.

    y = scan … {…}                             all = scan … {…}
      body(…, h):                                body(…, h):
        d = sub h[None, :] h[:, None]     ->       …
        y = mul 2 d                                return h
        return y                               scan all … {…}
    scan y … {…}                                 body(…, h):
      body(…, y):                                  d = sub h[None, :] h[:, None]
        z = mul y z_bar                            y = mul 2 d
                                                   z = mul y z_bar

The derivative of a loop reads what the steps were made of, each value as it was recorded. To write one down in each step and
read it again takes longer than a few additions, and it is memory for all steps. Only operations of one instruction are done
again, on what the other loop reads anyway, on constants, and on values that are much smaller; and only for elementwise
operations, which take the result from registers.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pullback.control.scan_rule import scan
from pullback.core.kinds import Scalar
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.loops.carries import drop_dead_carries
from pullback.passes.loops.form import Loop
from pullback.rules import elementwise
from pullback.rules.indexing import index
from pullback.rules.shapes import reshape, transpose

_CHEAP = frozenset({elementwise.add, elementwise.sub, elementwise.mul, elementwise.neg, elementwise.square})
_VIEWS = frozenset({index, reshape, transpose})

#: Operations that are done again for one value, at most.
_MOST_OPERATIONS = 3

#: What is saved instead of a value is smaller by this factor.
_SMALLER = 8


def recompute_saved(graph: Graph) -> Graph:
    """Save less for the loops that read what others save, inside loops and branches too."""
    graph = replace(graph, nodes=tuple(node.with_bodies(recompute_saved) for node in graph.nodes))
    loops = {node: Loop.of(node) for node in graph.nodes if node.primitive is scan}
    if len(loops) < 2:
        return graph
    uses = Counter(atom for node in graph.nodes for atom in node.inputs)
    uses.update(graph.outputs)
    uses.update(guard.atom for guard in graph.guards)
    savers: dict[Atom, Loop] = {result: loop for loop in loops.values() for _, result in loop.ys}
    changed = False
    for reader in loops.values():
        for saver in {id(loop): loop for _, stack in reader.xs if (loop := savers.get(stack)) is not None}.values():
            changed |= _Pair(saver, reader, uses).recompute()
    if not changed:
        return graph
    written = [loops[node].written() if node in loops else [node] for node in graph.nodes]
    return drop_dead_carries(replace(graph, nodes=tuple(node for nodes in written for node in nodes)))


@dataclass
class _Pair:
    """A loop that saves values and one that reads them, step by step."""

    saver: Loop
    reader: Loop
    uses: "Counter[Atom]"
    """How often each stack is read; what others are computed from is read more than once, and stays saved."""

    def recompute(self) -> bool:
        """Whether anything is no longer saved."""
        makers: dict[Atom, Node] = {var: node for node in self.saver.nodes for var in node.outputs}
        found = False
        for inside, stack in list(self.reader.xs):
            saved = next((atom for atom, result in self.saver.ys if result is stack), None)
            if saved not in makers or self.uses[stack] != 1 or saved.type != inside.type:
                continue
            if _is_in_registers(self.saver, saved) and _is_in_registers(self.reader, inside):
                found |= self._recompute(inside, stack, saved, makers)
        return found

    def _recompute(self, inside: Var, stack: Atom, saved: Atom, makers: Mapping[Atom, Node]) -> bool:
        nodes: dict[Node, None] = {}
        leaves: dict[Atom, None] = {}
        if not self._trace(saved, saved, makers, nodes, leaves):
            return False
        if sum(node.primitive in _CHEAP for node in nodes) > _MOST_OPERATIONS:
            return False
        names = {leaf: self._named(leaf) for leaf in leaves}
        again = []
        for node in nodes:
            result = inside if node.outputs[0] is saved else Var(-1, node.outputs[0].type)
            again.append(replace(node, inputs=tuple(names.get(atom, atom) for atom in node.inputs), outputs=(result,)))
            names[node.outputs[0]] = result
        self.reader.nodes[:0] = again
        self.reader.xs = [(var, atom) for var, atom in self.reader.xs if var is not inside]
        self.saver.ys = [(atom, result) for atom, result in self.saver.ys if result is not stack]
        return True

    def _trace(
        self, atom: Atom, saved: Atom, makers: Mapping[Atom, Node], nodes: dict[Node, None], leaves: dict[Atom, None]
    ) -> bool:
        """Collect the nodes that compute a value, in order, and what they begin with; false where that is too much."""
        if isinstance(atom, Literal) or any(node.outputs[0] is atom for node in nodes):
            return True
        maker = makers.get(atom)
        is_view = maker is not None and maker.primitive in _VIEWS
        if atom is not saved and (
            self._is_read(atom) or (not is_view and _SMALLER * atom.type.nbytes <= saved.type.nbytes)
        ):
            leaves[atom] = None
            return not atom.type.weak
        if maker is None or maker.primitive not in _CHEAP | _VIEWS or atom.type.nbytes > saved.type.nbytes:
            return False
        if not all(self._trace(operand, saved, makers, nodes, leaves) for operand in maker.inputs):
            return False
        nodes[maker] = None
        return True

    def _is_read(self, atom: Atom) -> bool:
        """Whether it is a constant, or a value of the same step that the reader has."""
        if any(var is atom for var, _ in self.saver.consts):
            return True
        stacks: list[Atom] = [result for given, result in self.saver.ys if given is atom]
        stacks += [operand for var, operand in self.saver.xs if var is atom]
        return any(operand in stacks for _, operand in self.reader.xs)

    def _named(self, leaf: Atom) -> Var:
        """The name of a value of the saver in the body of the reader."""
        constant = next((operand for var, operand in self.saver.consts if var is leaf), None)
        operand = self.saver.stack(leaf) if constant is None else constant
        self.uses[operand] += 1
        pairs = self.reader.xs if constant is None else self.reader.consts
        known = next((var for var, atom in pairs if atom is operand and not var.type.weak), None)
        if known is not None:
            return known
        made = Var(-1, leaf.type)
        pairs.append((made, operand))
        return made


def _is_in_registers(loop: Loop, atom: Atom) -> bool:
    """Whether nothing but elementwise operations of a step reads a value, so that it need not be in memory there."""
    readers = [node for node in loop.nodes if atom in node.inputs]
    return all(isinstance(node.primitive, Scalar) for node in readers) and all(
        one.after is not atom for one in loop.carries
    )
