"""The primitive of `pb.while_loop`.

`while(*consts, *carry; condition, body, consts)` runs `body` (*consts, *carry) -> carry as long as `condition`
(*consts, *carry) -> truth value holds.

Forward: the loop over values and tangents. Reverse is refused: how many steps there will be is not known when memory is
planned. (On a tape `pb.while_loop` runs step by step, and its steps have derivatives in both directions.)
Batched: the loop goes on until it is over for all examples; those that are done keep what they have, and meanwhile the body
runs for them on the values of one that is not.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.control.body import Program, Pull, WithBodies, handed_over, record_body, run, walking
from pullback.control.body_transforms import along_examples, batched, on_examples, pushed, repeated
from pullback.control.leaves import as_type, is_differentiable, moving_type, zeros
from pullback.core.cases import tested_in
from pullback.core.types import ArrayType, type_of
from pullback.errors import NeedsValueError
from pullback.ir.graph import Graph, Var
from pullback.rules.reductions import sum_


class _While(WithBodies):
    repeats = True

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Step by step, walking the graphs."""
        return self.compiled({name: walking(params[name]) for name in ("condition", "body")}, params)(*operands)

    def compiled(self, bodies: dict[str, Callable[[], Program]], params: dict[str, Any]) -> Program:
        """Step by step, with programs."""
        consts = params["consts"]

        def loop(*operands: Any, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
            condition, body = bodies["condition"](), bodies["body"]()
            constants, carry = operands[:consts], operands[consts:]
            first = carry
            while condition(*constants, *carry)[0]:
                carry = tuple(body(*constants, *carry))
            if carry is first and out is None:
                carry = tuple(np.array(value) if isinstance(value, np.ndarray) else value for value in carry)
            return handed_over(carry, out)

        return loop

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        condition, body, consts = params["condition"], params["body"], params["consts"]
        results = tuple(atom.type for atom in body.outputs)
        for graph in (condition, body):
            if tuple(var.type for var in graph.inputs) != types:
                raise TypeError("while: the operands do not fit the body")
        if results != types[consts:]:
            raise TypeError("while: the carry changes its type")
        if condition.outputs[0].type.shape:
            raise TypeError("while: the condition is not one truth value")
        return results

    def value_and_pull(
        self, needed: Sequence[bool], operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Pull]:
        """Integers have no cotangents; anything else is refused."""
        body: Graph = params["body"]
        if any(is_differentiable(atom.type) for atom in body.outputs):
            raise NeedsValueError(
                "a while_loop that is compiled or batched has no reverse mode, as the number of its steps is not known beforehand; "
                "use fori_loop or scan with a fixed number of steps, or forward mode"
            )
        return self(*operands, **params), lambda _: [None] * len(needed)

    def value_and_push(
        self, tangents: Sequence[Any], operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Any]:
        condition, body, consts = params["condition"], params["body"], params["consts"]
        types = [var.type for var in body.inputs]
        moving = [dx is not None and is_differentiable(type_) for dx, type_ in zip(tangents, types, strict=True)]
        while True:
            both = pushed(body, moving, moving[consts:])
            grown = [*moving[:consts], *(was or n in both.extra_outputs for n, was in enumerate(moving[consts:]))]
            if grown == moving:
                break
            moving = grown
        movers = [number for number, moves in enumerate(moving) if moves]
        given = {
            number: zeros(moving_type(types[number]))
            if tangents[number] is None
            else as_type(tangents[number], moving_type(types[number]))
            for number in movers
        }
        constant = [number for number in movers if number < consts]
        carried = [number for number in movers if number >= consts]
        inputs = [
            *both.captured,
            *both.inputs[:consts],
            *(both.extra_inputs[number] for number in constant),
            *both.inputs[consts:],
            *(both.extra_inputs[number] for number in carried),
        ]
        outputs = [*both.outputs, *(both.extra_outputs[number - consts] for number in carried)]
        results = self(
            *both.consts,
            *operands[:consts],
            *(given[number] for number in constant),
            *operands[consts:],
            *(given[number] for number in carried),
            condition=_reading(condition, inputs, dict(zip(both.inputs, condition.inputs, strict=True))),
            body=Graph(tuple(inputs), (), both.graph.nodes, tuple(outputs)),
            consts=len(inputs) - len(outputs),
        )
        count = len(body.outputs)
        tangent_of = dict(zip(carried, results[count:], strict=True))
        return results[:count], tuple(tangent_of.get(consts + number) for number in range(count))

    def batch(self, operands: Sequence[Any], flags: Sequence[bool], params: dict[str, Any]) -> Any:
        """One loop for all examples."""
        condition, body, consts = params["condition"], params["body"], params["consts"]
        size = next(np.shape(x)[0] for x, own in zip(operands, flags, strict=True) if own)
        given, flags = flags, list(flags)
        while True:
            whole, differing = batched(body, flags, flags[consts:], size)
            test, (differs,) = batched(condition, flags, [False], size)
            grown = [
                *flags[:consts],
                *(was or now or differs for was, now in zip(flags[consts:], differing, strict=True)),
            ]
            if grown == flags:
                break
            flags = grown
        values = [
            repeated(x, var.type, size) if now and not before else x
            for x, var, now, before in zip(operands, body.inputs, flags, given, strict=True)
        ]
        numbers = np.arange(size)
        captured = [*whole.consts, *test.consts, numbers]
        types = [
            *(var.type for var in (*whole.captured, *test.captured)),
            type_of(numbers),
            *(var.type for var in whole.inputs),
        ]
        ours, theirs = len(whole.consts), len(captured)

        def goes_on(*operands: Any) -> Any:
            return run(test.graph, [*operands[ours : theirs - 1], *operands[theirs:]])[0]

        def any_goes_on(*operands: Any) -> tuple[list[Any], None]:
            still = goes_on(*operands)
            return [sum_(still, axes=(0,), keepdims=False) > 0 if differs else still], None

        def step(*operands: Any) -> tuple[list[Any], None]:
            values, before = operands[theirs:], operands[theirs + consts :]
            if not differs or not size:
                return run(whole.graph, [*operands[:ours], *values]), None
            still = goes_on(*operands)
            after = run(
                whole.graph, [*operands[:ours], *on_examples(still, operands[theirs - 1], values, flags, whole)]
            )
            return [
                np.where(along_examples(still, new), new, old) for new, old in zip(after, before, strict=True)
            ], None

        results = self(
            *captured,
            *values,
            condition=record_body(any_goes_on, types).graph,
            body=record_body(step, types).graph,
            consts=theirs + consts,
        )
        return tuple(
            result if own else repeated(result, atom.type, size)
            for result, own, atom in zip(results, flags[consts:], body.outputs, strict=True)
        )


def _reading(condition: Graph, inputs: Sequence[Var], renamed: dict[Var, Var]) -> Graph:
    """The condition with further inputs that it does not read."""
    return Graph(tuple(renamed.get(var) or Var(-1, var.type) for var in inputs), (), condition.nodes, condition.outputs)


while_ = _While("while")

tested_in("control/test_loops.py", "while")
