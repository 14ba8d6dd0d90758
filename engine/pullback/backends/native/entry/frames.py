"""Frames: what the native entry has to know of one program, and the memory of one run of it.

A frame is one block of 64-bit words. Its head says where the rest is, in bytes from the beginning:

    head | table of pointers for the program | objects fetched | stack | numbers | shapes | steps | outputs | makings

The words refer to objects without counting it; the `Frame` keeps them alive. Only the arrays that were returned last are
references of the block's own, which the `Frame` gives up when it goes. It never goes while a run is on in it: then what it
had is left for later.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from pullback.backends.native.entry.arenas import aligned_block
from pullback.backends.native.entry.forms import Form, Make, Makings, NotNativeError, makings
from pullback.ir.types import ArrayType

_WORD = 8


class Fetch(IntEnum):
    """How a thing that a program reads, or that has to be as it was, is fetched; the numbers are those of entry.ll."""

    ARGUMENT = 0
    CONSTANT = 1
    TUPLE_ITEM = 2
    LIST_ITEM = 3
    DICT_ITEM = 4
    FIRST_DICT_ITEM = 5
    NEXT_DICT_ITEM = 6
    CELL = 7
    CODE = 8
    DEFAULTS = 9
    KEYWORD_DEFAULTS = 10
    TYPE = 11
    ATTRIBUTES = 12


class Check(IntEnum):
    """How it is checked, and what becomes of it; the numbers are those of entry.ll."""

    IDENTITY = 0
    ARRAY = 1
    FLOAT = 2
    INT = 3
    BOOL = 4
    SCALAR = 5
    TUPLE = 6
    LIST = 7
    DICT = 8
    ANYTHING = 9


@dataclass(frozen=True, slots=True)
class Step:
    """One thing fetched and checked: `what` is a position or an object, `parent` the step that fetched what it is in."""

    fetch: Fetch
    what: Any
    check: Check
    expected: Any = None
    """The very object; for others than identity its type. `ABSENT` where there has to be nothing."""
    parent: int = 0
    input: int = -1
    """Which input of the program it is."""
    length: int = 0
    """Of a container."""


class _Absent:
    """What is expected where nothing may be found."""


ABSENT = _Absent()


@dataclass(frozen=True, slots=True, eq=False)
class NativeProgram:
    """Machine code that takes a table of pointers (inputs, outputs, arena) and gives zero; and what is in the table.

    What is not zero says that the values are not for this program.
    """

    address: int
    inputs: tuple[ArrayType, ...]
    """Those that are read on each call, then the constants."""
    outputs: tuple[ArrayType, ...]
    guards: tuple[bool | int, ...] = ()
    """What the last outputs have to be; the results of any other run are not what the caller asked for."""
    constants: tuple[np.ndarray[Any, Any], ...] = ()
    arena_nbytes: int = 0
    releases: bool = False
    """Whether it runs long enough for other threads to have the interpreter meanwhile."""
    owner: Any = None
    """What keeps the code in memory."""

    @property
    def results(self) -> tuple[ArrayType, ...]:
        """The outputs that are no guards."""
        return self.outputs[: len(self.outputs) - len(self.guards)]


class Frame:
    """The block of one frame, for calls with so many arguments that fetch and check these steps and give this form."""

    def __init__(
        self, program: NativeProgram, nargs: int, steps: Sequence[Step], form: Form, *, runs: int = -1
    ) -> None:
        made = makings(form)
        arena = aligned_block(program.arena_nbytes)
        constants = [np.require(constant, requirements=("C", "A")) for constant in program.constants]
        layout = _Layout(program, steps, made)
        self.words = np.zeros(layout.size, np.int64)
        self.program = program
        self.following: Frame | None = None
        self._outputs = layout.outputs
        self._kept: Any = (program, steps, made, arena, constants)
        layout.write(self.words, nargs, steps, made, runs)
        table = layout.table
        for number, constant in enumerate(constants, len(program.inputs) - len(constants)):
            self.words[table + number] = constant.ctypes.data
        self.words[table + len(program.inputs) + len(program.outputs)] = arena.ctypes.data

    @property
    def address(self) -> int:
        """Where the block begins."""
        return int(self.words.ctypes.data)

    def adopt(self, results: Sequence[Any]) -> None:
        """Take arrays that an earlier run made, to be written again when nobody else refers to them."""
        for number, value in enumerate(results):
            place = self._outputs + _OUTPUT_WORDS * number
            if type(value) is np.ndarray and self.words[place] == 0:
                _hold(id(value))
                self.words[place] = id(value)

    def follow_with(self, other: "Frame | None") -> None:
        """Try another frame where a call does not fit this one."""
        self.following = other
        self.words[_Head.NEXT] = 0 if other is None else id(other.words)

    @property
    def is_busy(self) -> bool:
        """Whether a run is on in it."""
        return bool(self.words[_Head.BUSY])

    def __del__(self) -> None:
        words = getattr(self, "words", None)
        if words is None or words[_Head.BUSY] == _CLOSED:
            return
        if words[_Head.BUSY]:  # another thread is in it
            _in_flight.append(Frame.__new__(Frame))
            _in_flight[-1].__dict__.update(self.__dict__)
            return
        words[_Head.BUSY] = _CLOSED
        for place in range(self._outputs, self._outputs + _OUTPUT_WORDS * len(self.program.outputs), _OUTPUT_WORDS):
            for array in (place, place + 1):
                address, words[array] = int(words[array]), 0
                if address:
                    _let_go(address)


class _Head(IntEnum):
    """The words of the head; `%Frame` in entry.ll is the same."""

    BUSY = 0
    NEXT = 1
    PROGRAM = 2
    RELEASES = 3
    ARGUMENTS = 4
    STEPS = 5
    STEPS_AT = 6
    OBJECTS_AT = 7
    OUTPUTS = 8
    OUTPUTS_AT = 9
    MAKINGS = 10
    MAKINGS_AT = 11
    TABLE_AT = 12
    STACK_AT = 13
    RUNS = 14
    GUARDS = 15
    GUARDS_AT = 16


_CLOSED = 2
_STEP_WORDS, _OUTPUT_WORDS, _MAKING_WORDS, _GUARD_WORDS = 8, 7, 3, 3

#: How a guard is looked at: the kind of what was seen, and the dtype it is seen in.
_GUARD_KINDS = {
    (bool, "b1"): 0,
    (bool, "i8"): 1,
    (bool, "i4"): 2,
    (bool, "f8"): 3,
    (bool, "f4"): 4,
    (int, "i8"): 5,
    (int, "i4"): 6,
}


class _Layout:
    """Where the parts of a frame are, in words."""

    def __init__(self, program: NativeProgram, steps: Sequence[Step], made: Makings) -> None:
        self.program = program
        self.size = len(_Head) + len(_Head) % 2
        self.steps = self._place(_STEP_WORDS * len(steps))
        self.table = self._place(len(program.inputs) + len(program.outputs) + 1)
        self.objects = self._place(len(steps))
        self.outputs = self._place(_OUTPUT_WORDS * len(program.outputs))
        self.makings = self._place(_MAKING_WORDS * len(made))
        self.stack = self._place(len(made) + 1)
        self.numbers = self._place(len(program.inputs) + len(program.outputs))
        self.shapes = self._place(sum(len(type_.shape) for type_ in (*program.inputs, *program.outputs)))
        self.guards = self._place(_GUARD_WORDS * len(program.guards))
        self.numbers_made = {making.output for making in made if making.kind in _NUMBERS_MADE}
        self.numbers_made.update(range(len(program.results), len(program.outputs)))
        for number in self.numbers_made:
            if program.outputs[number].size != 1 or any(m.output == number and m.kind is Make.ARRAY for m in made):
                raise NotNativeError(f"output {number} is no number, or not only one")

    def _place(self, words: int) -> int:
        begin = self.size
        self.size += words
        return begin

    def write(self, words: np.ndarray[Any, Any], nargs: int, steps: Sequence[Step], made: Makings, runs: int) -> None:
        program = self.program
        base = int(words.ctypes.data)
        words[: len(_Head)] = (
            0,
            0,
            program.address,
            program.releases,
            nargs,
            len(steps),
            self.steps * _WORD,
            self.objects * _WORD,
            len(program.outputs),
            self.outputs * _WORD,
            len(made),
            self.makings * _WORD,
            self.table * _WORD,
            self.stack * _WORD,
            runs,
            len(program.guards),
            self.guards * _WORD,
        )
        shapes = []
        shape_at = self.shapes
        for type_ in (*program.inputs, *program.outputs):
            shapes.append(shape_at * _WORD)
            words[shape_at : shape_at + len(type_.shape)] = type_.shape
            shape_at += len(type_.shape)
        for number, step in enumerate(steps):
            begin = self.steps + number * _STEP_WORDS
            words[begin : begin + _STEP_WORDS] = self._step_words(step, shapes)
            if step.input >= 0 and step.check is not Check.ARRAY:
                words[self.table + step.input] = base + self._number(step.input)
        for number, type_ in enumerate(program.outputs):
            place = len(program.inputs) + number
            target = (self.table + place) * _WORD
            if number in self.numbers_made:
                target = 0
                words[self.table + place] = base + self._number(place)
            begin = self.outputs + number * _OUTPUT_WORDS
            words[begin : begin + _OUTPUT_WORDS] = (0, 0, id(type_.dtype), len(type_.shape), shapes[place], target, 0)
        for number, making in enumerate(made):
            begin = self.makings + number * _MAKING_WORDS
            detail = making.output if making.kind is Make.ARRAY else making.length
            if making.kind in _NUMBERS_MADE:
                detail = self._number(len(program.inputs) + making.output)
            taken = 0 if making.object is None and making.kind is not Make.CONSTANT else id(making.object)
            words[begin : begin + _MAKING_WORDS] = (making.kind, detail, taken)

        for number, seen in enumerate(program.guards):
            output = len(program.results) + number
            kind = _GUARD_KINDS.get((type(seen), program.outputs[output].dtype.str[1:]))
            if kind is None:
                raise NotNativeError(f"a guard is {type(seen).__name__} of {program.outputs[output].dtype}")
            begin = self.guards + number * _GUARD_WORDS
            words[begin : begin + _GUARD_WORDS] = (kind, self._number(len(program.inputs) + output), int(seen))

    def _number(self, place: int) -> int:
        """Where a number is that the program reads or writes, in bytes; places are those of the table."""
        return (self.numbers + place) * _WORD

    def _step_words(self, step: Step, shapes: Sequence[int]) -> tuple[int, ...]:
        what = int(step.what) if step.fetch in _BY_POSITION else id(step.what)
        type_ = expected = detail = target = nbytes = ndim = 0
        if step.check is Check.IDENTITY:
            expected = 0 if step.expected is ABSENT else id(step.expected)
        else:
            type_, detail = id(step.expected), step.length
        if step.check is Check.ARRAY:
            of = self.program.inputs[step.input]
            expected, ndim, detail, nbytes = id(of.dtype), len(of.shape), shapes[step.input], of.nbytes
            target = (self.table + step.input) * _WORD
        elif step.input >= 0:
            target = self._number(step.input)
        return (step.fetch | step.check << 32, step.parent | ndim << 32, what, type_, expected, detail, target, nbytes)


_BY_POSITION = frozenset({Fetch.ARGUMENT, Fetch.TUPLE_ITEM, Fetch.LIST_ITEM})
_NUMBERS_MADE = frozenset({Make.SCALAR, Make.DOUBLE, Make.FLOAT, Make.LONG, Make.INT, Make.BOOL})

#: Frames that were given up while a run was on in them.
_in_flight: list[Frame] = []


def let_go_of_finished() -> None:
    """Give up frames whose last run is over."""
    finished = [frame for frame in _in_flight if frame.words[_Head.BUSY] == 0]
    _in_flight[:] = [frame for frame in _in_flight if frame.words[_Head.BUSY]]
    del finished


# Functions of our own: what ctypes.pythonapi has by name is shared with everybody, and so are its argument types.
_hold = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_IncRef", ctypes.pythonapi))
_let_go = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_DecRef", ctypes.pythonapi))
