"""The primitive of `pb.checkpoint` in compiled functions.

`checkpointed(*operands; body)` gives what the body gives. Saved for the pullback: the operands, nothing else. The
pullback is a node with a body too, which computes the values again before it goes back through them; as the two bodies
are graphs of their own, common subexpressions are not found across them, which would undo the bargain.
Orders and modes: any.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback import trees
from pullback.control.body import Program, Pull, WithBodies, handed_over, record_body, walking
from pullback.control.body_partition import partition_body
from pullback.control.body_transforms import TransformedGraph, batched, pulled, pushed
from pullback.control.leaves import as_type, is_differentiable, moving_type, traced_type, zeros
from pullback.core.cases import tested_in
from pullback.core.primitive import TracedValue
from pullback.core.types import ArrayType
from pullback.ir.graph import Graph, Var


class _Checkpoint(WithBodies):
    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Evaluate the body by walking its graph."""
        return tuple(walking(params["body"])()(*operands))

    def compiled(self, bodies: dict[str, Callable[[], Program]], params: dict[str, Any]) -> Program:
        """The program of the body as it is."""

        def once(*operands: Any, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
            return handed_over(bodies["body"]()(*operands), out)

        return once

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        body: Graph = params["body"]
        if tuple(var.type for var in body.inputs) != types:
            raise TypeError("checkpointed: the operands do not fit the body")
        return tuple(atom.type for atom in body.outputs)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Compute the values again, and go back through them."""
        return self._back(needed, operands, params["body"], y_bar)

    def value_and_pull(
        self, needed: Sequence[bool], operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Pull]:
        y = self(*operands, **params)
        return y, partial(self._back, needed, operands, params["body"])

    def _back(self, needed: Sequence[bool], operands: Sequence[Any], body: Graph, y_bar: Any) -> Sequence[Any]:
        active = [need and is_differentiable(var.type) for need, var in zip(needed, body.inputs, strict=True)]
        nothing = [False] * len(active)
        whole = pulled(body, active, nothing, active)
        parts = partition_body(whole, constant=(), given=whole.inputs, recompute=True)
        bars = parts.graph.outputs[len(body.outputs) :]
        seeded = {key[1]: var for key, var in whole.extra_inputs.items()}
        seeds = [
            zeros(var.type) if y_bar[number] is None else as_type(y_bar[number], var.type)
            for number, var in seeded.items()
        ]
        inputs = (*whole.captured, *whole.inputs, *seeded.values())
        results = iter(
            self(*whole.consts, *operands, *seeds, body=Graph(inputs, (), tuple(parts.backward(bars)), bars))
        )
        return [next(results) if is_active else None for is_active in active]

    def value_and_push(
        self, tangents: Sequence[Any], operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Any]:
        body: Graph = params["body"]
        moving = [dx is not None and is_differentiable(var.type) for dx, var in zip(tangents, body.inputs, strict=True)]
        both = pushed(body, moving, [False] * len(body.outputs))
        given = [as_type(tangents[number], moving_type(body.inputs[number].type)) for number in both.extra_inputs]
        results = self._applied(both, [*operands, *given], [*both.inputs, *both.extra_inputs.values()])
        count = len(body.outputs)
        tangent_of = dict(zip(both.extra_outputs, results[count:], strict=True))
        return results[:count], tuple(tangent_of.get(number) for number in range(count))

    def batch(self, operands: Sequence[Any], flags: Sequence[bool], params: dict[str, Any]) -> Any:
        """The body for all examples."""
        body: Graph = params["body"]
        size = next(np.shape(x)[0] for x, own in zip(operands, flags, strict=True) if own)
        whole, _ = batched(body, flags, [True] * len(body.outputs), size)
        return self._applied(whole, operands, whole.inputs)

    def _applied(self, whole: TransformedGraph, operands: Sequence[Any], inputs: Sequence[Var]) -> Any:
        body = Graph((*whole.captured, *inputs), (), whole.graph.nodes, whole.graph.outputs)
        return self(*whole.consts, *operands, body=body)


def checkpointed_node(function: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """The result of the function, computed by one node from the traced ones of its arguments and what it closes over."""
    leaves, rebuild = trees.flatten((tuple(args), keywords))
    traced = [number for number, leaf in enumerate(leaves) if isinstance(leaf, TracedValue)]

    def values_of(*values: Any) -> tuple[list[Any], trees.Rebuild]:
        own = list(leaves)
        for number, value in zip(traced, values, strict=True):
            own[number] = value
        positional, named = rebuild(iter(own))
        return trees.flatten(function(*positional, **named))

    body = record_body(values_of, [traced_type(leaves[number]) for number in traced])
    results = checkpointed(*body.consts, *(leaves[number] for number in traced), body=body.graph)
    return body.rest(iter(results))


checkpointed = _Checkpoint("checkpointed")

tested_in("control/test_checkpoints.py", "checkpointed")
