"""Steps that repeat become a loop: a Python `for` of a thousand equal steps is compiled as one body.

    for t in range(1000):                        scan over x and the numbers, carrying y:
        y = np.sin(y) * a + x[t] * 0.5 ** t        sin y; mul … a; mul x_t number_t; add
        kept.append(y)                             gives y, stacked

What a step reads of steps before is carried. What is the same in every step is a constant, what differs is stacked: elements
of one array are a slice of it, numbers and arrays that the function made are stacked when it is compiled. Values of single
steps that are read behind the loop are taken from its stacked results.

It runs before differentiation, so that the derivative is a loop too. The same operations are done on the same numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np

from pullback.control.scan_rule import scan
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.loops import FEWEST_NODES_SAVED
from pullback.passes.loops.elements import NodeBuilder, elements_first, join_elements
from pullback.passes.loops.form import applied
from pullback.passes.loops.repetition import InnerOperand, LoopOperand, OuterOperand, Repetition, repetitions
from pullback.rules.indexing import index
from pullback.rules.joining import concatenate
from pullback.rules.shapes import reshape
from pullback.rules.storing import STORES
from pullback.simplification.common_subexpressions import identity, value_identity
from pullback.simplification.dead_code import drop_dead

StepResult: TypeAlias = tuple[int, int]
"""A result of a step: the position of the node among those of the step, and the number of its result."""

#: Bytes of a value that is made outside of the loop, another one in each step, up to which it is worth a copy in a stack.
_MOST_COPIED = 4096

#: Loops that one graph becomes, about: a loop takes a walk over all nodes, so it has to save a part of them.
_MOST_LOOPS = 64

#: Nodes that a loop has to save to be one also where it stays with the interpreter: they compile in some ten seconds.
_ALWAYS_SAVED = 5000


def roll_loops(graph: Graph, is_compiled: Callable[[Node], bool]) -> Graph:
    """Make a loop of everything that repeats, of what saves most first, inside of the loops too.

    `is_compiled` is true if a node becomes machine code. A loop does so as a whole or not at all, so one that has other
    nodes is left as it is, unless it is so long that compiling it takes longer than a person waits.
    """
    if any(node.primitive.effect.writes for node in graph.nodes):
        return graph
    rolled, has_loops = graph, False
    if len(graph.nodes) > FEWEST_NODES_SAVED:
        rolled = elements_first(drop_dead(graph))
        while True:
            least = len(rolled.nodes) // _MOST_LOOPS
            loops = (
                _rolled(rolled, repetition, is_compiled)
                for repetition in repetitions(rolled)
                if repetition.saved >= least
            )
            # A loop whose single results are all read behind it saves nothing: it would be found again, and again.
            smaller = next((new for new in loops if new is not None and len(new.nodes) < len(rolled.nodes)), None)
            if smaller is None:
                break
            rolled, has_loops = smaller, True
    rolled = drop_dead(join_elements(rolled)) if has_loops else graph
    nodes = tuple(node.with_bodies(lambda body: _rolled_inside(body, is_compiled)) for node in rolled.nodes)
    same = all(new is old for new, old in zip(nodes, rolled.nodes, strict=True))
    return rolled if same else replace(rolled, nodes=nodes)


def _rolled_inside(body: Graph, is_compiled: Callable[[Node], bool]) -> Graph:
    rolled = roll_loops(body, is_compiled)
    return body if rolled.captures else rolled  # bodies have no arrays of their own


@dataclass
class _Writer:
    """A loop being written: its operands by group, with their names in the body, and the nodes before it."""

    captured: dict[Atom, Any]
    makers: dict[Atom, Node]
    steps: int
    consts: dict[Atom, Var] = field(default_factory=dict)
    carries: dict[Any, tuple[Var, Atom]] = field(default_factory=dict)
    xs: dict[Any, tuple[Var, Var]] = field(default_factory=dict)
    before: NodeBuilder = field(default_factory=NodeBuilder)

    def operand(self, read: LoopOperand, variables: dict[StepResult, Var]) -> Atom | None:
        """The name in the body of what a node reads; None where it would have to be copied."""
        if isinstance(read, OuterOperand):
            return self.outside(read.atoms)
        return self.carried(read) if read.delay else variables[read.position, read.output]

    def outside(self, atoms: Sequence[Atom]) -> Atom | None:
        """The name in the body of what is made before the loop; None where it would have to be copied."""
        first = atoms[0]
        identities = (
            [identity(first)] if all(atom is first for atom in atoms) else [self._identity(atom) for atom in atoms]
        )
        if all(each == identities[0] for each in identities):
            if isinstance(first, Literal):
                return first
            return self.consts.setdefault(first, Var(-1, first.type))
        key = tuple(identities)
        if key not in self.xs:
            stack = self._stack(atoms)
            if stack is None:
                return None
            self.xs[key] = (Var(-1, first.type), stack)
        return self.xs[key][0]

    def carried(self, read: InnerOperand) -> Var:
        """The name in the body of a value of an earlier step; one of several steps before is handed on from carry to carry."""
        for delay in range(1, read.delay + 1):
            starts = read.starts[:delay]
            key = (read.position, read.output, tuple(map(identity, starts)))
            if key not in self.carries:
                self.carries[key] = (Var(-1, starts[-1].type), starts[-1])
        return self.carries[key][0]

    def _identity(self, atom: Atom) -> Any:
        if atom in self.captured:
            return value_identity(self.captured[atom])
        return identity(atom)

    def _stack(self, atoms: Sequence[Atom]) -> Var | None:
        """A new operand of the loop: the values of all steps along a first axis."""
        first = atoms[0].type
        type_ = ArrayType((self.steps, *first.shape), first.dtype)
        if all(isinstance(atom, Literal) or atom in self.captured for atom in atoms):
            values = [atom.value if isinstance(atom, Literal) else self.captured[atom] for atom in atoms]
            stacked = np.array(values)
            if stacked.dtype != first.dtype or stacked.shape != type_.shape:
                return None  # numbers beyond 64 bits
            return self.before.capture(stacked)
        nodes = [self.makers[atom] for atom in atoms if atom in self.makers]
        stack = self.before.stack(nodes, _MOST_COPIED) if len(nodes) == len(atoms) else None
        if stack is not None or first.weak or first.nbytes > _MOST_COPIED:
            return stack
        rows = [self.before.apply(reshape, [atom], shape=(1, *first.shape)) for atom in atoms]
        return self.before.apply(concatenate, rows, axis=0)


def _copies_in_a_loop(node: Node) -> bool:
    """True if a node writes in place in straight code, but copies what a loop carries in each step."""
    return node.primitive in STORES and node.inputs[0].type.nbytes > _MOST_COPIED


def _rolled(graph: Graph, repetition: Repetition, is_compiled: Callable[[Node], bool]) -> Graph | None:
    """The graph with a loop for what repeats, or None where that takes copies that are not worth it."""
    step = graph.nodes[repetition.start : repetition.start + repetition.period]
    if repetition.saved < _ALWAYS_SAVED and not all(is_compiled(node) and not _copies_in_a_loop(node) for node in step):
        return None
    stacked = _stacked(graph, repetition)
    if any(steps == {repetition.steps - 1} for steps in stacked.values()):
        # Read of the last step alone, which is left outside.
        repetition = repetition.without_last()
        stacked = _stacked(graph, repetition)
    if not repetition.is_worthwhile or any(_output(graph, repetition, 0, result).type.weak for result in stacked):
        return None
    loop = _Writer(
        {capture.var: capture.value for capture in graph.captures},
        {var: node for node in graph.nodes[: repetition.start] for var in node.outputs},
        repetition.steps,
    )
    variables = {
        (position, number): Var(-1, var.type)
        for position, node in enumerate(step)
        for number, var in enumerate(node.outputs)
    }
    body: list[Node] = []
    for position, (node, reads) in enumerate(zip(step, repetition.reads, strict=True)):
        operands = [loop.operand(read, variables) for read in reads]
        inputs = tuple(operand for operand in operands if operand is not None)
        if len(inputs) < len(operands):
            return None
        body.append(
            replace(node, inputs=inputs, outputs=tuple(variables[position, k] for k in range(len(node.outputs))))
        )
    return _written(graph, repetition, loop, variables, body, stacked)


def _written(
    graph: Graph,
    repetition: Repetition,
    loop: "_Writer",
    variables: dict[StepResult, Var],
    body: Sequence[Node],
    stacked: dict[StepResult, set[int]],
) -> Graph:
    after = [
        variables[key[:2]] if len(key[2]) == 1 else loop.carries[(*key[:2], key[2][:-1])][0] for key in loop.carries
    ]
    inputs = (*loop.consts.values(), *(var for var, _ in loop.carries.values()), *(var for var, _ in loop.xs.values()))
    operands = [*loop.consts, *(start for _, start in loop.carries.values()), *(xs for _, xs in loop.xs.values())]
    whole = applied(
        scan,
        operands,
        body[0].source,
        body=Graph(inputs, (), tuple(body), (*after, *(variables[result] for result in stacked))),
        carries=len(loop.carries),
        consts=len(loop.consts),
        length=repetition.steps,
        reverse=False,
    )
    values: dict[Atom, Atom] = {}
    for (position, number, starts), last in zip(loop.carries, whole.outputs, strict=False):
        values[_output(graph, repetition, repetition.steps - len(starts), (position, number))] = last
    behind = []
    for (result, steps), stack in zip(stacked.items(), whole.outputs[len(loop.carries) :], strict=True):
        for number in sorted(steps):
            behind.append(applied(index, [stack], whole.source, key=number))
            values[_output(graph, repetition, number, result)] = behind[-1].outputs[0]

    def current(atom: Atom) -> Atom:
        return values.get(atom, atom)

    rest = [
        replace(node, inputs=tuple(map(current, node.inputs)))
        for node in graph.nodes[repetition.start + repetition.steps * repetition.period :]
    ]
    nodes = (*graph.nodes[: repetition.start], *loop.before.nodes, whole, *behind, *rest)
    return replace(graph, captures=(*graph.captures, *loop.before.captures)).rewritten(nodes, current)


def _stacked(graph: Graph, repetition: Repetition) -> dict[StepResult, set[int]]:
    """The results that are read behind the loop, the ends of carries excepted, and the steps they are read of."""
    ends = {
        (read.position, read.output, delay)
        for reads in repetition.reads
        for read in reads
        if isinstance(read, InnerOperand)
        for delay in range(1, read.delay + 1)
    }
    makers = {
        var: (step, (position, number))
        for step in range(repetition.steps)
        for position in range(repetition.period)
        for number, var in enumerate(graph.nodes[repetition.start + step * repetition.period + position].outputs)
    }
    rest = graph.nodes[repetition.start + repetition.steps * repetition.period :]
    read_behind = [atom for node in rest for atom in node.inputs]
    stacked: dict[StepResult, set[int]] = {}
    for atom in (*read_behind, *graph.ends()):
        step, result = makers.get(atom, (0, None)) if isinstance(atom, Var) else (0, None)
        if result is not None and (*result, repetition.steps - step) not in ends:
            stacked.setdefault(result, set()).add(step)
    return stacked


def _output(graph: Graph, repetition: Repetition, step: int, result: StepResult) -> Var:
    """The results of one step."""
    position, number = result
    return graph.nodes[repetition.start + step * repetition.period + position].outputs[number]
