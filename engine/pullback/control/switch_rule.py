"""The primitive of `pb.cond` and `pb.switch`.

`switch(index, *operands; branches)` gives what the branch of that number gives; `branches` are closed graphs that take all
operands and give results of the same types. `cond` is a switch of two by a truth value: false is branch 0.

Reverse: the branch that is taken saves what its reverse reads, in slots that branches share where the types are the
same; the slots of the others are zeros that are never read. Forward: values and tangents in one branch.
Batched: where the index is the same for all examples one branch is taken for all; else every branch that some example takes
is run, on safe operands for the others, and each example is given its own.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.control.body import Program, Pull, WithBodies, handed_over, record_body, run, walking
from pullback.control.body_partition import BodyPartition, closed, partition_body
from pullback.control.body_transforms import TransformedGraph, along_examples, batched, on_examples, pulled, pushed
from pullback.control.leaves import as_type, is_differentiable, moving_type, zeros
from pullback.core.cases import tested_in
from pullback.core.types import ArrayType, type_of
from pullback.errors import ControlFlowError
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.rules import reductions, shapes


class _Switch(WithBodies):
    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """The branch that is taken, by walking its graph."""
        bodies = {f"branches[{k}]": walking(branch) for k, branch in enumerate(params["branches"])}
        return self.compiled(bodies, params)(*operands)

    def compiled(self, bodies: dict[str, Callable[[], Program]], params: dict[str, Any]) -> Program:
        """The program of the branch that is taken."""
        branches = [bodies[f"branches[{k}]"] for k in range(len(params["branches"]))]

        def taken(index: Any, *operands: Any, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
            position = int(bool(index) if isinstance(index, np.bool_) else index)  # int of it makes an array
            if not 0 <= position < len(branches):
                raise ControlFlowError(
                    f"switch: index is {position}, there are {len(branches)} branches, numbered from 0"
                )
            return handed_over(branches[position]()(*operands), out)

        return taken

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        if types[0].shape or types[0].dtype.kind not in "biu":
            raise TypeError(f"switch: the index is {types[0]}, not one integer or truth value")
        first, *others = params["branches"]
        results = tuple(atom.type for atom in first.outputs)
        for branch in (first, *others):
            if tuple(var.type for var in branch.inputs) != types[1:]:
                raise TypeError("switch: the operands do not fit the branches")
            if tuple(atom.type for atom in branch.outputs) != results:
                raise TypeError("switch: the branches give results of different types")
        return results

    def value_and_push(
        self, tangents: Sequence[Any], operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Any]:
        branches: tuple[Graph, ...] = params["branches"]
        count = len(branches[0].outputs)
        moving = [
            dx is not None and is_differentiable(var.type)
            for dx, var in zip(tangents[1:], branches[0].inputs, strict=True)
        ]
        nothing = [False] * count
        moves = [set(pushed(branch, moving, nothing).extra_outputs) for branch in branches]
        required = [number in set().union(*moves) for number in range(count)]
        both = [pushed(branch, moving, required) for branch in branches]
        given = [
            as_type(dx, moving_type(var.type))
            for dx, var, moves in zip(tangents[1:], branches[0].inputs, moving, strict=True)
            if moves
        ]
        results = self._by_branch(
            operands[0],
            [*operands[1:], *given],
            [
                (
                    [*whole.inputs, *(whole.extra_inputs[n] for n in range(len(moving)) if moving[n])],
                    list(zip(whole.captured, whole.consts, strict=True)),
                    closed(
                        whole.graph,
                        (),
                        whole.graph.nodes,
                        [*whole.outputs, *(whole.extra_outputs[n] for n in range(count) if required[n])],
                    ),
                )
                for whole in both
            ],
        )
        directions = iter(results[count:])
        return results[:count], tuple(next(directions) if required[number] else None for number in range(count))

    def value_and_pull(
        self, needed: Sequence[bool], operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Pull]:
        branches: tuple[Graph, ...] = params["branches"]
        count = len(branches[0].outputs)
        active = [
            need and is_differentiable(var.type) for need, var in zip(needed[1:], branches[0].inputs, strict=True)
        ]
        nothing = [False] * len(active)
        parts = [_partitioned(pulled(branch, active, nothing, active)) for branch in branches]
        slots, filled = _shared_slots(parts)
        y = self._by_branch(
            operands[0],
            operands[1:],
            [
                (
                    list(one.whole.inputs),
                    list(zip(one.whole.captured, one.whole.consts, strict=True)),
                    _with_slots(one, count, slots, places),
                )
                for one, places in zip(parts, filled, strict=True)
            ],
        )
        saved = y[count:]

        def pull(y_bar: Any) -> Sequence[Any]:
            seeds = [
                zeros(moving_type(atom.type)) if bar is None else as_type(bar, moving_type(atom.type))
                for bar, atom in zip(y_bar, branches[0].outputs, strict=True)
                if is_differentiable(atom.type)
            ]
            bars = iter(
                self._by_branch(
                    operands[0],
                    [*operands[1:], *saved, *seeds],
                    [_backward(one, count, slots, places) for one, places in zip(parts, filled, strict=True)],
                )
            )
            return [None, *(next(bars) if is_active else None for is_active in active)]

        return y[:count], pull

    def batch(self, operands: Sequence[Any], flags: Sequence[bool], params: dict[str, Any]) -> Any:
        """One branch for all examples, or every branch and the choice of an example."""
        branches: tuple[Graph, ...] = params["branches"]
        size = next(np.shape(x)[0] for x, own in zip(operands, flags, strict=True) if own)
        everything = [True] * len(branches[0].outputs)
        wholes = [batched(branch, flags[1:], everything, size)[0] for branch in branches]
        if not flags[0]:
            return self._by_branch(
                operands[0],
                operands[1:],
                [
                    (
                        list(whole.inputs),
                        list(zip(whole.captured, whole.consts, strict=True)),
                        closed(whole.graph, (), whole.graph.nodes, whole.outputs),
                    )
                    for whole in wholes
                ],
            )
        chosen: Sequence[Any] = ()
        for number, whole in enumerate(wholes):
            results = self._for_those(number, len(wholes), operands, flags[1:], whole)
            chosen = (
                [
                    np.where(along_examples(operands[0] == number, value), value, before)
                    for value, before in zip(results, chosen, strict=True)
                ]
                if chosen
                else results
            )
        return tuple(chosen)

    def _for_those(
        self, number: int, count: int, operands: Sequence[Any], flags: Sequence[bool], whole: TransformedGraph
    ) -> Any:
        """The results of a batched branch for the examples that take it; zeros, and not run, where none does.

        The others run on the operands of one that does: what is infinite, NaN or an error for their own never happens.
        """
        taken = operands[0] == number
        size = np.size(taken)
        if not size:
            return [zeros(atom.type) for atom in whole.outputs]

        def nothing(*_: Any) -> tuple[list[Any], None]:
            return [zeros(atom.type) for atom in whole.outputs], None

        def something(*values: Any) -> tuple[list[Any], None]:
            consts, values, taken = values[:captured], values[captured:-1], values[-1]
            results = run(whole.graph, [*consts, *on_examples(taken, np.arange(size), values, flags, whole)])
            return [as_type(value, atom.type) for value, atom in zip(results, whole.outputs, strict=True)], None

        captured = len(whole.consts)
        types = [*(var.type for var in whole.graph.inputs), ArrayType((size,), np.dtype(bool))]
        bodies = [record_body(branch, types) for branch in (nothing, something)]
        is_taken = reductions.any_(taken, axes=(0,), keepdims=False)
        if number == 0 and operands[0].dtype.kind != "b":  # once: numbers that are none of a branch are refused
            bodies += bodies[:1] * (count - 2)
            low, high = (
                reduce(operands[0], axes=(0,), keepdims=False) for reduce in (reductions.min_, reductions.max_)
            )
            is_taken = np.where(low < 0, low, np.where(high < count, is_taken, high))
        return self._by_branch(
            is_taken,
            [*whole.consts, *operands[1:], taken],
            [
                (
                    body.graph.inputs[len(body.consts) :],
                    list(zip(body.graph.inputs, body.consts, strict=False)),
                    body.graph,
                )
                for body in bodies
            ],
        )

    def _by_branch(
        self,
        index: Any,
        operands: Sequence[Any],
        bodies: Sequence[tuple[Sequence[Var], Sequence[tuple[Var, Any]], Graph]],
    ) -> Any:
        """Apply the primitive to other branches: for each its inputs, what it captured, and a graph."""
        captured = [value for _, pairs, _ in bodies for _, value in pairs]
        types = [type_of(value) for value in captured]
        branches = []
        start = 0
        for inputs, pairs, graph in bodies:
            own = [var for var, _ in pairs]
            before = [_unread(type_) for type_ in types[:start]]
            after = [_unread(type_) for type_ in types[start + len(own) :]]
            start += len(own)
            branches.append(Graph((*before, *own, *after, *inputs), (), graph.nodes, graph.outputs))
        return self(index, *captured, *operands, branches=tuple(branches))


def _unread(type_: ArrayType) -> Var:
    return Var(-1, type_)


def _partitioned(whole: TransformedGraph) -> BodyPartition:
    return partition_body(whole, constant=(), given=whole.inputs)


def _shared_slots(parts: Sequence[BodyPartition]) -> tuple[list[ArrayType], list[list[int]]]:
    """Types of the slots, and for each branch the slots of what it saves."""
    slots: list[ArrayType] = []
    filled: list[list[int]] = []
    for one in parts:
        own: list[int] = []
        for var in _saved_by_branch(one):
            type_ = moving_type(var.type)
            free = next((k for k, slot in enumerate(slots) if slot == type_ and k not in own), len(slots))
            if free == len(slots):
                slots.append(type_)
            own.append(free)
        filled.append(own)
    return slots, filled


def _saved_by_branch(one: BodyPartition) -> list[Var]:
    """A branch runs once: what no operand is needed for is saved with the rest."""
    return [*one.saved, *one.invariant]


def _with_slots(one: BodyPartition, count: int, slots: Sequence[ArrayType], places: Sequence[int]) -> Graph:
    """The forward branch with its slots filled; zeros in those of the others."""
    outputs: list[Atom] = list(one.graph.outputs[:count])
    nodes = one.forward()
    values = dict(zip(places, _saved_by_branch(one), strict=True))
    for number, type_ in enumerate(slots):
        var = values.get(number)
        zero: Atom = Literal(type_.dtype.type(0), ArrayType((), type_.dtype))
        if var is None and not type_.shape:
            outputs.append(zero)
            continue
        if var is not None and not var.type.weak:
            outputs.append(var)
            continue
        filler = Var(-1, type_)
        if var is None:
            nodes.append(Node(shapes.broadcast_to, (zero,), (("shape", type_.shape),), (filler,), ""))
        else:
            nodes.append(Node(shapes.astype, (var,), (("dtype", type_.dtype),), (filler,), ""))
        outputs.append(filler)
    return closed(one.graph, (), nodes, outputs)


def _backward(
    one: BodyPartition, count: int, slots: Sequence[ArrayType], places: Sequence[int]
) -> tuple[Sequence[Var], Sequence[tuple[Var, Any]], Graph]:
    values = dict(zip(places, _saved_by_branch(one), strict=True))
    bars = list(one.graph.outputs[count:])
    seeds = [var for key, var in one.whole.extra_inputs.items() if key[0] == "seed"]
    inputs = [*one.whole.inputs, *(values.get(k) or _unread(type_) for k, type_ in enumerate(slots)), *seeds]
    graph = closed(one.graph, (), one.backward(bars), bars)
    return inputs, list(zip(one.whole.captured, one.whole.consts, strict=True)), graph


switch = _Switch("switch")

tested_in("control/test_conditionals.py", "switch")
