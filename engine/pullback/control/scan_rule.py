"""The primitive of `pb.scan` and of `pb.fori_loop` with known bounds.

`scan(*consts, *carry, *xs; body, carries, consts, length, reverse)` gives the last carry and, stacked along a new first
axis, what else the body gives in each step. `body` is a closed graph (*consts, *carry, *x) -> (*carry, *y).

Reverse: the forward loop saves, stacked, what the reverse body reads (see `body_partition`), and a loop in the other direction
carries the cotangents of the carry and the sums of those of the constants. Forward: one loop over values and tangents.
Orders and modes: any; what is made here are scans again.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.control.body import Program, Pull, WithBodies, handed_over, run, walking
from pullback.control.body_partition import BodyPartition, closed, partition_body
from pullback.control.body_transforms import TransformedGraph, batched, pulled, pushed, repeated
from pullback.control.leaves import as_type, is_differentiable, zeros
from pullback.core.cases import tested_in
from pullback.core.types import ArrayType
from pullback.ir.graph import Atom, Graph, Var


class Layout:
    """The layout of a scan: how its operands and results are grouped."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.body: Graph = params["body"]
        self.consts: int = params["consts"]
        self.carries: int = params["carries"]
        self.length: int = params["length"]
        self.reverse: bool = params["reverse"]
        self.inputs = range(len(self.body.inputs))
        self.const_inputs = self.inputs[: self.consts]
        self.carry_inputs = self.inputs[self.consts : self.consts + self.carries]
        self.x_inputs = self.inputs[self.consts + self.carries :]
        self.outputs = range(len(self.body.outputs))
        self.y_outputs = self.outputs[self.carries :]

    def grown(self, flags: Sequence[bool], outputs: Sequence[bool]) -> list[bool]:
        """The flags of the inputs with those of the carry set that the outputs have set."""
        grown = list(flags)
        for position, number in enumerate(self.carry_inputs):
            grown[number] = grown[number] or outputs[position]
        return grown

    def required(self, flags: Sequence[bool]) -> list[bool]:
        """Outputs that must have what inputs have: those of the carry."""
        return [*(flags[number] for number in self.carry_inputs), *[False] * len(self.y_outputs)]


class _Scan(WithBodies):
    repeats = True

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Step by step, walking the graph of the body."""
        return self.compiled({"body": walking(params["body"])}, params)(*operands)

    def compiled(self, bodies: dict[str, Callable[[], Program]], params: dict[str, Any]) -> Program:
        """Step by step, with a program for the body."""
        layout = Layout(params)
        consts, carries = layout.consts, layout.consts + layout.carries
        weak = [layout.body.inputs[number].type.weak for number in layout.x_inputs]
        rows = [self._result_type(layout, number) for number in layout.y_outputs]
        steps = range(layout.length)[::-1] if layout.reverse else range(layout.length)

        def loop(*operands: Any, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
            constants, carry, xs = operands[:consts], operands[consts:carries], operands[carries:]
            ys = [np.empty(type_.shape, type_.dtype) for type_ in rows] if out is None else out[layout.carries :]
            program = bodies["body"]()
            for step in steps:
                entries = [x.item(step) if is_number else x[step] for x, is_number in zip(xs, weak, strict=True)]
                results = program(*constants, *carry, *entries)
                carry = tuple(results[: layout.carries])
                for y, result in zip(ys, results[layout.carries :], strict=True):
                    y[step] = result
                del results  # what the caller does not have any more is written to again in the next step
            if not steps and out is None:
                carry = tuple(np.array(value) if isinstance(value, np.ndarray) else value for value in carry)
            return (*handed_over(carry, None if out is None else out[: layout.carries]), *ys)

        return loop

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        layout = Layout(params)
        for number, type_ in enumerate(types):
            inside = layout.body.inputs[number].type
            wanted = inside
            if number in layout.x_inputs:
                wanted = ArrayType((layout.length, *inside.shape), inside.dtype)
            if type_ != wanted:
                raise TypeError(f"scan: operand {number} is {type_}, its body takes {inside}")
        results = [atom.type for atom in layout.body.outputs]
        for number, result in zip(layout.carry_inputs, results, strict=False):
            if layout.body.inputs[number].type != result:
                raise TypeError(f"scan: a carry of {layout.body.inputs[number].type} becomes {result}")
        ys = [ArrayType((layout.length, *type_.shape), type_.dtype) for type_ in results[layout.carries :]]
        return (*results[: layout.carries], *ys)

    def value_and_push(
        self, tangents: Sequence[Any], operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Any]:
        layout = Layout(params)
        types = [var.type for var in layout.body.inputs]
        moving = [
            tangent is not None and is_differentiable(type_) for tangent, type_ in zip(tangents, types, strict=True)
        ]
        while True:
            both = pushed(layout.body, moving, layout.required(moving))
            grown = layout.grown(moving, [number in both.extra_outputs for number in layout.outputs])
            if grown == moving:
                break
            moving = grown
        given = [_direction(dx, self._operand_type(layout, number)) for number, dx in enumerate(tangents)]
        results = self._regrouped(
            layout,
            both.graph,
            [
                (*zip(both.captured, both.consts, strict=True), *_with(both, operands, layout.const_inputs, given)),
                _with(both, operands, layout.carry_inputs, given),
                _with(both, operands, layout.x_inputs, given),
            ],
            [*both.outputs[: layout.carries], *_present(both, layout.outputs[: layout.carries])],
            [*both.outputs[layout.carries :], *_present(both, layout.y_outputs)],
            reverse=layout.reverse,
        )
        values = iter(results)
        carry = [next(values) for _ in range(layout.carries)]
        tangent_of = {n: next(values) for n in layout.outputs[: layout.carries] if n in both.extra_outputs}
        ys = [next(values) for _ in layout.y_outputs]
        tangent_of |= {n: next(values) for n in layout.y_outputs if n in both.extra_outputs}
        return (*carry, *ys), tuple(tangent_of.get(number) for number in layout.outputs)

    def value_and_pull(
        self, needed: Sequence[bool], operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Pull]:
        layout = Layout(params)
        types = [var.type for var in layout.body.inputs]
        active = [need and is_differentiable(type_) for need, type_ in zip(needed, types, strict=True)]
        while True:
            summed = [number in layout.const_inputs and is_active for number, is_active in enumerate(active)]
            carried = [number in layout.carry_inputs and is_active for number, is_active in enumerate(active)]
            whole = pulled(layout.body, active, summed, carried)
            grown = layout.grown(active, [number in whole.rest for number in layout.outputs])
            if grown == active:
                break
            active = grown
        parts = partition_body(
            whole,
            constant=[whole.inputs[number] for number in layout.const_inputs],
            given=[whole.inputs[number] for number in layout.x_inputs],
            stacked=layout.y_outputs,
            recompute=params.get("recompute", False),
        )
        if not layout.length:  # nothing is computed for steps that there are not
            parts = replace(parts, invariant=())
        y = self._forward(layout, parts, operands)
        count = len(layout.outputs)

        def pull(y_bar: Any) -> Sequence[Any]:
            return self._backward(layout, parts, active, operands, y_bar, y[count:])

        return y[:count], pull

    def _forward(self, layout: Layout, parts: BodyPartition, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The loop, which also gives what is saved."""
        whole = parts.whole
        outputs = parts.graph.outputs[: len(layout.outputs)]
        results: tuple[Any, ...] = self._regrouped(
            layout,
            closed(parts.graph, parts.graph.inputs, parts.forward(), [*outputs, *parts.saved]),
            [
                (*zip(whole.captured, whole.consts, strict=True), *_with(whole, operands, layout.const_inputs)),
                _with(whole, operands, layout.carry_inputs),
                _with(whole, operands, layout.x_inputs),
            ],
            outputs[: layout.carries],
            [*outputs[layout.carries :], *parts.saved],
            reverse=layout.reverse,
        )
        return results

    def _backward(
        self,
        layout: Layout,
        parts: BodyPartition,
        active: Sequence[bool],
        operands: Sequence[Any],
        y_bar: Any,
        saved: Sequence[Any],
    ) -> Sequence[Any]:
        """The loop in the other direction, over cotangents."""
        whole = parts.whole
        bar_of = dict(zip(whole.extra_outputs, parts.graph.outputs[len(layout.outputs) :], strict=True))
        seeds = {
            number: _direction(bar, self._result_type(layout, number))
            for number, bar in enumerate(y_bar)
            if ("seed", number) in whole.extra_inputs
        }
        sums = [number for number in layout.const_inputs if ("sum", number) in whole.extra_inputs]
        carried = [(place, number) for place, number in enumerate(layout.carry_inputs) if active[number]]
        moved_xs = [number for number in layout.x_inputs if number in bar_of]
        constant = [
            *zip(whole.captured, whole.consts, strict=True),
            *_with(whole, operands, layout.const_inputs),
        ]
        graph = closed(parts.graph, [var for var, _ in constant], parts.graph.nodes, parts.invariant)
        constant += zip(parts.invariant, run(graph, [value for _, value in constant]), strict=True)
        carry_outputs = [*(bar_of[number] for number in sums), *(bar_of[number] for _, number in carried)]
        x_outputs = [bar_of[number] for number in moved_xs]
        results = self._regrouped(
            layout,
            closed(parts.graph, (), parts.backward([*carry_outputs, *x_outputs]), [*carry_outputs, *x_outputs]),
            [
                constant,
                [
                    *((whole.extra_inputs["sum", n], zeros(whole.extra_inputs["sum", n].type)) for n in sums),
                    *((whole.extra_inputs["seed", place], seeds[place]) for place, _ in carried),
                ],
                [
                    *_with(whole, operands, layout.x_inputs),
                    *zip(parts.saved, saved, strict=True),
                    *(
                        (whole.extra_inputs["seed", number], seeds[number])
                        for number in layout.y_outputs
                        if number in seeds
                    ),
                ],
            ],
            carry_outputs,
            x_outputs,
            reverse=not layout.reverse,
        )
        cotangents = dict(zip([*sums, *(number for _, number in carried), *moved_xs], results, strict=True))
        return [cotangents.get(number) for number in layout.inputs]

    def _operand_type(self, layout: Layout, number: int) -> ArrayType:
        inside = layout.body.inputs[number].type
        return ArrayType((layout.length, *inside.shape) if number in layout.x_inputs else inside.shape, inside.dtype)

    def _result_type(self, layout: Layout, number: int) -> ArrayType:
        inside = layout.body.outputs[number].type
        return ArrayType((layout.length, *inside.shape) if number >= layout.carries else inside.shape, inside.dtype)

    def batch(self, operands: Sequence[Any], flags: Sequence[bool], params: dict[str, Any]) -> Any:
        """One loop for all examples."""
        layout = Layout(params)
        size = next(np.shape(x)[0] for x, own in zip(operands, flags, strict=True) if own)
        flags = list(flags)
        given = flags
        while True:
            whole, differing = batched(layout.body, flags, layout.required(flags), size)
            grown = layout.grown(flags, differing)
            if grown == flags:
                break
            flags = grown
        values = [
            repeated(x, var.type, size) if now and not before else x
            for x, var, now, before in zip(operands, layout.body.inputs, flags, given, strict=True)
        ]
        for number in layout.x_inputs:
            if flags[number]:
                values[number] = np.swapaxes(values[number], 0, 1)
        results = self._regrouped(
            layout,
            whole.graph,
            [
                (*zip(whole.captured, whole.consts, strict=True), *_with(whole, values, layout.const_inputs)),
                _with(whole, values, layout.carry_inputs),
                _with(whole, values, layout.x_inputs),
            ],
            whole.outputs[: layout.carries],
            whole.outputs[layout.carries :],
            reverse=layout.reverse,
        )
        return tuple(
            (np.swapaxes(result, 0, 1) if number >= layout.carries else result)
            if differs
            else repeated(result, self._result_type(layout, number), size)
            for number, (result, differs) in enumerate(zip(results, differing, strict=True))
        )

    def _regrouped(
        self,
        layout: Layout,
        graph: Graph,
        operands: Sequence[Sequence[tuple[Var, Any]]],
        carry_outputs: Sequence[Atom],
        y_outputs: Sequence[Atom],
        *,
        reverse: bool,
    ) -> Any:
        """Apply the primitive to a body made of a graph, whose inputs are given with their operands by group."""
        read = {atom for node in graph.nodes for atom in node.inputs} | {*carry_outputs, *y_outputs}
        constants, carry, xs = operands
        constants = [(var, value) for var, value in constants if var in read]
        xs = [(var, value) for var, value in xs if var in read]
        inputs = [var for group in (constants, carry, xs) for var, _ in group]
        body = Graph(tuple(inputs), (), graph.nodes, (*carry_outputs, *y_outputs))
        return self(
            *(value for group in (constants, carry, xs) for _, value in group),
            body=body,
            carries=len(carry),
            consts=len(constants),
            length=layout.length,
            reverse=reverse,
        )


def _direction(value: Any, type_: ArrayType) -> Any:
    """A tangent or cotangent as a loop takes it."""
    return zeros(type_) if value is None else as_type(value, type_)


def _with(
    whole: TransformedGraph, operands: Sequence[Any], numbers: Sequence[int], tangents: Sequence[Any] | None = None
) -> list[tuple[Var, Any]]:
    """Inputs with their operands; then the tangents of those that have one."""
    pairs = [(whole.inputs[number], operands[number]) for number in numbers]
    if tangents is not None:
        pairs += [(whole.extra_inputs[number], tangents[number]) for number in numbers if number in whole.extra_inputs]
    return pairs


def _present(whole: TransformedGraph, numbers: Sequence[int]) -> list[Atom]:
    return [whole.extra_outputs[number] for number in numbers if number in whole.extra_outputs]


scan = _Scan("scan")

tested_in("control/test_scans.py", "scan")
