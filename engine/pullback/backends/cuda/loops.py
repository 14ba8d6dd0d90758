"""Loops and branches on a device: each body is a program of its own, and what runs it step by step is here.

    run = Scan(Layout(params), body)
    run(results, block, operands)

A body works in memory that it is given: parts of a block, for what lies between its steps, and a tensor for each result. So a
step asks for no memory, and writes where it belongs: what is carried into two parts of the block in turn, and in the last step into the
result; what is collected into its row of the result. Kernels want memory that begins at a multiple of `ALIGNMENT` bytes: rows
that do not are spread once before the loop, and drawn together once behind it.

Whole numbers that depend on nothing but the number of the step stay on the host, so that reading at them is no look at the device.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.backends.cuda.capture import ALIGNMENT
from pullback.control.scan_rule import Layout
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.devices.cuda.values import torch_dtype
from pullback.errors import ControlFlowError
from pullback.ir.graph import Graph
from pullback.ir.strides import contiguous_strides
from pullback.planning.arena import ALIGNMENT as LINE
from pullback.planning.arena import Arena

#: The most nodes that a loop may be in a CUDA graph, in which every step has its own.
MOST_NODES = 10_000

#: The most bytes that both branches of a condition may move where both are run, so that nothing has to be looked at.
MOST_BRANCH_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Body:
    """The program of a body."""

    graph: Graph
    program: Callable[..., Sequence[Any]]
    """`program(tensors, *inputs)` writes the results that are on the device, and gives the others."""
    there: tuple[bool, ...]
    """The inputs on the device."""
    kept: tuple[ArrayType, ...]
    arena: Arena
    places: tuple[int | None, ...]
    """The place of each result among the tensors; None for results on the host."""
    kernels: int
    launches: int
    """Nodes of a graph that one run is, about."""
    moved_bytes: int
    fallbacks: tuple[str, ...]
    transient: frozenset[str]
    listings: tuple[tuple[str, Callable[[], str]], ...]
    """Kernels of each launch, by their name in the text."""
    kernel_stages: Callable[[], Sequence[tuple[str, str]]]
    """The kernels after each pass over kernels."""

    def tensors(self, block: Tensor) -> list[Any]:
        """The tensors that it works in, with None in the places of results."""
        offsets = (self.arena.offsets.get(number) for number in range(len(self.kept)))
        return [
            None if offset is None else part_of(block, offset, type_)
            for offset, type_ in zip(offsets, self.kept, strict=True)
        ]

    def run(self, tensors: list[Any], inputs: Sequence[Any], outs: Sequence[Any]) -> Sequence[Any]:
        """One run: the results, those on the device in the memory of `outs`."""
        for place, out in zip(self.places, outs, strict=True):
            if place is not None:
                tensors[place] = out
        of_host = iter(self.program(tensors, *inputs))
        return [next(of_host) if place is None else out for place, out in zip(self.places, outs, strict=True)]


def part_of(block: Tensor, offset: int, type_: ArrayType) -> Tensor:
    """A tensor in a block of bytes."""
    return block[offset : offset + type_.nbytes].view(torch_dtype(type_.dtype)).view(type_.shape)


class _Places:
    """The offsets of what lies in a block."""

    def __init__(self, *bodies: Body) -> None:
        """The bodies, which run one after the other, share what they work in."""
        self.nbytes = max(body.arena.nbytes for body in bodies)

    def add(self, nbytes: int) -> int:
        """The offset of so many bytes more."""
        offset, self.nbytes = self.nbytes, self.nbytes + -(-nbytes // LINE) * LINE
        return offset


class _Turns:
    """Two parts of the block for each value carried on the device, written alternately."""

    def __init__(self, body: Body, count: int, places: _Places) -> None:
        self._types = [atom.type for atom in body.graph.outputs[:count]]
        self._offsets = [
            None if place is None else (places.add(type_.nbytes), places.add(type_.nbytes))
            for type_, place in zip(self._types, body.places, strict=False)
        ]

    def of(self, block: Tensor) -> list[list[Any]]:
        """The tensors of even steps, and of odd ones; None for a value of the host."""
        return [
            [
                None if offsets is None else part_of(block, offsets[turn], type_)
                for type_, offsets in zip(self._types, self._offsets, strict=True)
            ]
            for turn in (0, 1)
        ]


class _Rows:
    """The rows of an array that is taken apart or put together, which begin where kernels want it."""

    def __init__(self, length: int, row: ArrayType, places: _Places) -> None:
        items = ALIGNMENT // row.dtype.itemsize
        self._shape = (length, *row.shape)
        self._type = ArrayType((length, -(-row.size // items) * items), row.dtype)
        self._offset = places.add(self._type.nbytes) if row.nbytes % ALIGNMENT else None

    def spread(self, block: Tensor, whole: Tensor) -> Tensor:
        """The array itself, or one as large in the block; its elements are not copied."""
        if self._offset is None:
            return whole
        strides = (self._type.shape[1], *contiguous_strides(self._shape[1:]))
        return part_of(block, self._offset, self._type).as_strided(self._shape, strides)


def _finish(results: Sequence[Any], carried: Sequence[Any]) -> None:
    """Put what is carried at the end into the results, where it is not yet. None stands for a result that nobody reads."""
    for result, value in zip(results, carried, strict=True):
        if isinstance(value, Tensor):
            if value is not result:
                result.copy_(value)
        elif result is not None:
            result.fill_(np.asarray(value).item())


class _Stack:
    """A result by row, where steps write it, and where it belongs."""

    def __init__(self, rows: _Rows, block: Tensor, whole: Tensor) -> None:
        self._whole = whole
        self._spread = rows.spread(block, whole)
        self.rows = self._spread.unbind(0)

    def finish(self) -> None:
        """Draw the rows together."""
        if self._spread is not self._whole:
            self._whole.copy_(self._spread)


class Scan:
    """Runs the steps of a scan."""

    def __init__(self, layout: Layout, body: Body) -> None:
        self._layout = layout
        self._body = body
        places = _Places(body)
        self._turns = _Turns(body, layout.carries, places)
        self._xs = [
            _Rows(layout.length, body.graph.inputs[number].type, places) if body.there[number] else None
            for number in layout.x_inputs
        ]
        self._ys = [
            None if body.places[number] is None else _Rows(layout.length, body.graph.outputs[number].type, places)
            for number in layout.y_outputs
        ]
        self.nbytes = places.nbytes

    def __call__(self, results: Sequence[Any], block: Tensor, operands: Sequence[Any]) -> Sequence[Any]:
        """Run them; gives the stacked numbers of the host, which are no results in memory."""
        layout, xs = self._layout, []
        for number, rows in zip(layout.x_inputs, self._xs, strict=True):
            whole = operands[number]
            if rows is not None:
                spread = rows.spread(block, whole)
                xs.append((spread if spread is whole else spread.copy_(whole)).unbind(0))
            else:
                xs.append(whole.tolist() if layout.body.inputs[number].type.weak else whole)
        given = iter(results[layout.carries :])
        ys = [None if rows is None else _Stack(rows, block, next(given)) for rows in self._ys]
        of_host: list[list[Any]] = [[None] * layout.length if stack is None else [] for stack in ys]
        tensors, turns = self._body.tensors(block), self._turns.of(block)
        consts, carry = operands[: layout.consts], operands[layout.consts : layout.x_inputs.start]
        last = [
            None if place is None else result
            for result, place in zip(results[: layout.carries], self._body.places, strict=False)
        ]
        for turn in range(layout.length):
            step = layout.length - 1 - turn if layout.reverse else turn
            outs = last if turn == layout.length - 1 else turns[turn % 2]
            rows_out = [None if stack is None else stack.rows[step] for stack in ys]
            made = self._body.run(tensors, [*consts, *carry, *(x[step] for x in xs)], [*outs, *rows_out])
            carry = made[: layout.carries]
            for number, stack in enumerate(ys):
                if stack is None:
                    of_host[number][step] = made[layout.carries + number]
        _finish(results[: layout.carries], carry)
        for stack in ys:
            if stack is not None:
                stack.finish()
        types = [self._body.graph.outputs[number].type for number in layout.y_outputs]
        return [
            np.asarray(numbers, type_.dtype)
            for numbers, type_, stack in zip(of_host, types, ys, strict=True)
            if stack is None
        ]


class While:
    """Runs the steps of a while loop, and looks at the condition before each."""

    def __init__(self, consts: int, condition: Body, body: Body) -> None:
        self._consts = consts
        self._condition = condition
        self._body = body
        places = _Places(condition, body)
        self._turns = _Turns(body, len(body.graph.outputs), places)
        self._flag = places.add(1)
        self.nbytes = places.nbytes

    def __call__(self, results: Sequence[Any], block: Tensor, operands: Sequence[Any]) -> Sequence[Any]:
        """Run them."""
        consts, carry = operands[: self._consts], operands[self._consts :]
        flag = part_of(block, self._flag, ArrayType((), np.dtype(bool)))
        turns, turn = self._turns.of(block), 0
        of_condition, of_body = self._condition.tensors(block), self._body.tensors(block)
        while bool(self._condition.run(of_condition, [*consts, *carry], [flag])[0]):
            carry = self._body.run(of_body, [*consts, *carry], turns[turn % 2])
            turn += 1
        _finish(results, carry)
        return ()


class Branches:
    """Runs the branch that is chosen; a single one without being told which."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        self._bodies = bodies
        self.nbytes = _Places(*bodies).nbytes

    def __call__(self, results: Sequence[Any], block: Tensor, operands: Sequence[Any], index: Any = 0) -> Sequence[Any]:
        """Run it; this looks at an index that is on the device."""
        position = int(index)
        if not 0 <= position < len(self._bodies):
            raise ControlFlowError(
                f"switch: index is {position}, there are {len(self._bodies)} branches, numbered from 0"
            )
        self._run(position, results, block, operands)
        return ()

    def _run(self, position: int, results: Sequence[Any], block: Tensor, operands: Sequence[Any]) -> None:
        body = self._bodies[position]
        body.run(body.tensors(block), operands, results)


class BothBranches(Branches):
    """Runs both branches of a condition, and takes the results of one: nothing is looked at."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        super().__init__(bodies)
        places = _Places(*bodies)
        self._types = [atom.type for atom in bodies[0].graph.outputs]
        self._offsets = [[places.add(type_.nbytes) for type_ in self._types] for _ in bodies]
        self.nbytes = places.nbytes

    def __call__(self, results: Sequence[Any], block: Tensor, operands: Sequence[Any], index: Any = 0) -> Sequence[Any]:
        """Run them."""
        made = [
            [part_of(block, offset, type_) for offset, type_ in zip(offsets, self._types, strict=True)]
            for offsets in self._offsets
        ]
        for position, outs in enumerate(made):
            self._run(position, outs, block, operands)
        for result, if_false, if_true in zip(results, *made, strict=True):
            torch.where(index, if_true, if_false, out=result)
        return ()
