"""The layout of the words of a frame.

A template is made of 64-bit words, which every frame for calls of one kind has a copy of. Its head says where the rest is, in bytes from the beginning:

    head | steps | table of pointers for the program | objects fetched | outputs | makings | stack | numbers | shapes
         | guards | watches | pairs | tables of dicts | words held | questions

Numbers that the program reads or writes are among the words, and the table points at them: what points changes when the words
are copied, all else stays.
"""

from collections.abc import Callable, Collection, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from pullback.backends.native.entry.argument_steps import ABSENT, Check, Fetch, Leaf, Step, steps_of
from pullback.backends.native.entry.machine_programs import NativeProgram
from pullback.backends.native.entry.result_trees import Form, Make, NotNativeError, Out, ResultStep, makings
from pullback.backends.native.entry.watched_memory import WatchedMemory
from pullback.blocks import Block, block_of
from pullback.dataclass import dataclass

WORD = 8

#: Values of the word BUSY: no run is on, a run is on, no further run is allowed.
IDLE, RUNNING, CLOSED = 0, 1, 2


class Head(IntEnum):
    """The words of the head; `frame` in entry.c is the same."""

    BUSY = 0
    NEXT = 1
    PROGRAM = 2
    ALONE = 3
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
    WATCHES = 17
    WATCHES_AT = 18
    PAIRS = 19
    PAIRS_AT = 20
    OUT_STEPS = 21
    OUT_PAIRS = 22
    LOCK = 23
    TABLES = 24
    TABLES_AT = 25
    HELD = 26
    HELD_AT = 27
    QUESTIONS = 28
    QUESTIONS_AT = 29


#: Words of one of each, as in entry.c.
STEP, OUTPUT, MAKING, GUARD, WATCH, PAIR, DICT, HELD, QUESTION = 8, 8, 3, 3, 7, 2, 3, 3, 5

ARRAYS = frozenset({Check.ARRAY, Check.WRITTEN})
_BY_POSITION = frozenset({Fetch.ARGUMENT, Fetch.TUPLE_ITEM, Fetch.LIST_ITEM})
_TAKING = frozenset({Make.CONSTANT, Make.SCALAR, Make.NUMPY_DOUBLE, Make.DICT, Make.CALL})
_NUMBERS_MADE = frozenset({Make.SCALAR, Make.NUMPY_DOUBLE, Make.DOUBLE, Make.FLOAT, Make.LONG, Make.INT, Make.BOOL})

#: Kinds of guards, by the type of the value that was seen and the dtype of its atom.
_GUARD_KINDS = {
    (bool, "b1"): 0,
    (bool, "i8"): 1,
    (bool, "i4"): 2,
    (bool, "f8"): 3,
    (bool, "f4"): 4,
    (int, "i8"): 5,
    (int, "i4"): 6,
}


@dataclass(frozen=True, slots=True)
class WatchedInput:
    """An input that is put into the frame once, and of which some elements have to stay what they are.

    Looked at are `count` elements, `step` from one to the next, and the last one of all.
    """

    input: int
    count: int
    step: int


@dataclass(frozen=True, slots=True)
class Question:
    """A function that runs no Python, and what it has to say, or the call goes through Python.

    It is asked of what a step has fetched, of the object at an address, or of nothing.
    """

    function: Callable[..., Any]
    expected: Any
    step: int = -1
    address: int = 0


class Template:
    """The words that all frames for calls of one kind begin with.

    Calls have `nargs` arguments; `steps` fetch what is not given to the frame once; what they return has the `form`. The
    arrays of the steps in `apart` must not overlap, pair by pair. Calls that `takes_out` may say where results are written.
    """

    def __init__(
        self,
        program: NativeProgram,
        nargs: int,
        steps: Sequence[Step],
        form: Form,
        *,
        watched: Sequence[WatchedInput] = (),
        apart: Sequence[tuple[int, int]] = (),
        runs: int = -1,
        takes_out: bool = False,
        held: WatchedMemory | None = None,
        questions: Sequence[Question] = (),
        leaves: Sequence[int] | None = None,
    ) -> None:
        """`leaves` are the steps that fetch what Python makes a result of; without them those of the inputs that are read."""
        self.program = program
        self.held = held or WatchedMemory()
        self.watched = tuple(watched)
        made = makings(form)
        out_steps, out_pairs = _out(program, nargs, steps, form) if takes_out else ([], [])
        apart = [*apart, *out_pairs]
        steps = [*steps, *out_steps]
        self._size = 0
        self._head = self._place(len(Head))
        self._steps = self._place(STEP * len(steps))
        self.table = self._place(len(program.inputs) + len(program.outputs) + 1)
        self._objects = self._place(len(steps))
        self.outputs = self._place(OUTPUT * len(program.outputs))
        self._makings = self._place(MAKING * len(made))
        self._leaves = leaves
        self._values = self._place(len(program.inputs) if leaves is None else len(leaves))
        self._stack = self._place(len(made) + 1)
        self._numbers = self._place(len(program.inputs) + len(program.outputs))
        self._shapes = self._place(sum(len(type_.shape) for type_ in (*program.inputs, *program.outputs)))
        self._guards = self._place(GUARD * len(program.guards))
        self.watches = self._place(WATCH * len(watched))
        self._pairs = self._place(PAIR * len(apart))
        self._tables = self._place(DICT * len(self.held.tables))
        self._held = self._place(HELD * len(self.held.pairs))
        self.questions = tuple(questions)
        self._questions = self._place(QUESTION * len(self.questions))
        self.words = np.zeros(self._size, np.int64)
        self.inside: list[int] = []
        """Words that are places among the words themselves, from the beginning until they are in a frame."""
        self.steps = tuple(steps)
        self.makings = made
        calls = any(making.kind is Make.CALL for making in made)
        self._write_head(nargs, len(steps) - len(out_steps), len(made), len(apart) - len(out_pairs), runs, calls=calls)
        self.words[Head.OUT_STEPS], self.words[Head.OUT_PAIRS] = len(out_steps), len(out_pairs)
        shapes = self._write_shapes()
        self._write_steps(steps, shapes)
        self._write_outputs(made, shapes, {step.place for step in steps[: len(steps) - len(out_steps)]})
        self._write_makings(made, steps)
        self._write_guards()
        for number, pair in enumerate(apart):
            self._write(self._pairs, PAIR, number, pair)
        for number, table in enumerate(self.held.tables):
            self._write(self._tables, DICT, number, table)
        for number, words in enumerate(self.held.pairs):
            self._write(self._held, HELD, number, words)
        for number, one in enumerate(self.questions):
            asks = int(one.step >= 0 or one.address != 0)
            asked = (id(one.function), asks, one.address, max(one.step, 0), id(one.expected))
            self._write(self._questions, QUESTION, number, asked)

    def expects_the_same(self, other: "Template") -> bool:
        """True if another template, for the same calls, is of steps that look for the very same things."""
        return (
            self.held == other.held
            and len(self.steps) == len(other.steps)
            and all(own.expected is others.expected for own, others in zip(self.steps, other.steps, strict=True))
        )

    def number(self, place: int) -> int:
        """The word of a number that the program reads or writes; places are those of the table."""
        return self._numbers + place

    def _place(self, words: int) -> int:
        begin = self._size
        self._size += words
        return begin

    def _write(self, part: int, length: int, number: int, words: Sequence[int]) -> None:
        begin = part + number * length
        self.words[begin : begin + length] = words

    def _write_head(self, nargs: int, steps: int, made: int, apart: int, runs: int, *, calls: bool) -> None:
        program = self.program
        values = {
            Head.PROGRAM: program.address,
            Head.ALONE: 1 if program.releases else 2 if calls else 0,
            Head.ARGUMENTS: nargs,
            Head.STEPS: steps,
            Head.STEPS_AT: self._steps * WORD,
            Head.OBJECTS_AT: self._objects * WORD,
            Head.OUTPUTS: len(program.outputs),
            Head.OUTPUTS_AT: self.outputs * WORD,
            Head.MAKINGS: made,
            Head.MAKINGS_AT: self._makings * WORD,
            Head.TABLE_AT: self.table * WORD,
            Head.STACK_AT: self._stack * WORD,
            Head.RUNS: runs,
            Head.GUARDS: len(program.guards),
            Head.GUARDS_AT: self._guards * WORD,
            Head.WATCHES: len(self.watched),
            Head.WATCHES_AT: self.watches * WORD,
            Head.PAIRS: apart,
            Head.PAIRS_AT: self._pairs * WORD,
            Head.TABLES: len(self.held.tables),
            Head.TABLES_AT: self._tables * WORD,
            Head.HELD: len(self.held.pairs),
            Head.HELD_AT: self._held * WORD,
            Head.QUESTIONS: len(self.questions),
            Head.QUESTIONS_AT: self._questions * WORD,
        }
        for word, value in values.items():
            self.words[word] = value

    def _write_shapes(self) -> list[int]:
        """Write the shapes of everything in the table; gives the offset of each in bytes."""
        places = []
        begin = self._shapes
        for type_ in (*self.program.inputs, *self.program.outputs):
            places.append(begin * WORD)
            self.words[begin : begin + len(type_.shape)] = type_.shape
            begin += len(type_.shape)
        return places

    def _point_at_number(self, place: int) -> None:
        self.words[self.table + place] = self.number(place) * WORD
        self.inside.append(self.table + place)

    def _write_steps(self, steps: Sequence[Step], shapes: Sequence[int]) -> None:
        fetched = {step.place for step in steps}
        for place, type_ in enumerate(self.program.inputs):
            if place not in fetched and type_.shape == ():
                self._point_at_number(place)
        for number, step in enumerate(steps):
            self._write(self._steps, STEP, number, self._step(step, shapes))
            if step.place >= 0 and step.check not in ARRAYS:
                self._point_at_number(step.place)

    def _step(self, step: Step, shapes: Sequence[int]) -> tuple[int, ...]:
        what = int(step.what) if step.fetch in _BY_POSITION else id(step.what)
        type_ = expected = detail = target = nbytes = ndim = 0
        if step.fetch is Fetch.FUNCTION:  # with no defaults
            type_ = id(step.what.__code__)
        elif step.check is Check.IDENTITY:
            expected = 0 if step.expected is ABSENT else id(step.expected)
            type_ = 0 if step.inside is None else id(step.inside)
        else:
            type_, detail = id(step.expected), step.length
        if step.check in ARRAYS:
            array = (*self.program.inputs, *self.program.outputs)[step.place]
            expected, ndim, detail, nbytes = id(array.dtype), len(array.shape), shapes[step.place], array.nbytes
            target = (self.table + step.place) * WORD
        elif step.place >= 0:
            target = self.number(step.place) * WORD
            if step.check in (Check.DOUBLE_OR_FLOAT, Check.SINGLE_OR_FLOAT):
                expected = id(float)
        return (step.fetch | step.check << 32, step.parent | ndim << 32, what, type_, expected, detail, target, nbytes)

    def _write_outputs(self, made: Sequence[ResultStep], shapes: Sequence[int], fetched: Collection[int]) -> None:
        program = self.program
        numbers = {making.output for making in made if making.kind in _NUMBERS_MADE}
        arrays = {making.output for making in made if making.kind is Make.ARRAY}
        for number, type_ in enumerate(program.outputs):
            place = len(program.inputs) + number
            place_of_number = 0
            if number in numbers or number >= len(program.results):
                if type_.size != 1 or number in arrays:
                    raise NotNativeError(f"output {number} is no number, or not only one")
                place_of_number = self.number(place) * WORD
            target = 0 if place in fetched else (self.table + place) * WORD
            words = (0, 0, id(type_.dtype), len(type_.shape), shapes[place], target, 0, place_of_number)
            self._write(self.outputs, OUTPUT, number, words)

    def _write_makings(self, made: Sequence[ResultStep], steps: Sequence[Step]) -> None:
        fetched = {step.place: number for number, step in enumerate(steps) if step.place >= 0}
        read = len(self.program.inputs) - len(self.program.constants)
        for number, making in enumerate(made):
            detail = making.output if making.kind is Make.ARRAY else making.length
            if making.kind in _NUMBERS_MADE:
                detail = self.number(len(self.program.inputs) + making.output) * WORD
            taken = id(making.object) if making.kind in _TAKING else 0
            if making.kind is Make.VALUES:
                leaves = [fetched[place] for place in range(read)] if self._leaves is None else self._leaves
                self.words[self._values : self._values + len(leaves)] = leaves
                detail, taken = self._values * WORD, len(leaves)
            self._write(self._makings, MAKING, number, (making.kind, detail, taken))

    def _write_guards(self) -> None:
        first = len(self.program.results)
        for number, seen in enumerate(self.program.guards):
            dtype = self.program.outputs[first + number].dtype
            kind = _GUARD_KINDS.get((type(seen), dtype.str[1:]))
            if kind is None:
                raise NotNativeError(f"a guard is {type(seen).__name__} of {dtype}")
            place = self.number(len(self.program.inputs) + first + number) * WORD
            self._write(self._guards, GUARD, number, (kind, place, int(seen)))


def _out(
    program: NativeProgram, nargs: int, steps: Sequence[Step], form: Form
) -> tuple[list[Step], list[tuple[int, int]]]:
    """Steps that fetch the arrays in `out`, which comes behind the arguments; and pairs, of each and what it must not overlap."""
    try:
        found = steps_of([_written(form, len(program.inputs))], nargs, len(steps))
    except NotNativeError:
        return [], []
    written = sorted(step.place for step in found if step.check is Check.WRITTEN)
    if written != list(range(len(program.inputs), len(program.inputs) + len(program.results))):
        return [], []  # an output would have no memory
    arrays = [number for number, step in enumerate(steps) if step.check is Check.ARRAY]
    pairs: list[tuple[int, int]] = []
    for number, step in enumerate(found, len(steps)):
        if step.check is Check.WRITTEN:
            pairs.extend((number, other) for other in arrays)
            arrays.append(number)
    return found, pairs


def _written(form: Form, first: int) -> Any:
    """The tree of arrays that a result of this form is written into."""
    if form is None:
        return None
    if isinstance(form, Out):
        if form.kind not in (np.ndarray, np.generic) and np.result_type(form.kind) != form.dtype:
            raise NotNativeError(f"a {form.kind.__name__} is converted from {form.dtype}")
        return Leaf(first + form.number, Check.WRITTEN, np.ndarray)
    if isinstance(form, Block):
        return block_of(_written(form.array, first), form.layout)
    if type(form) is dict:
        return {key: _written(part, first) for key, part in form.items()}
    if type(form) in (tuple, list):
        return type(form)(_written(part, first) for part in form)
    raise NotNativeError("a result has a part that is no output")


def watch_words(watched: WatchedInput, array: np.ndarray[Any, Any], held: bytes) -> tuple[int, ...]:
    """The words of a watch: of this array, and of the bytes it held in the watched elements."""
    item_bytes = array.itemsize
    held_at = np.frombuffer(held, np.uint8).ctypes.data
    last = (array.size - 1) * item_bytes
    return (id(array), array.ctypes.data, item_bytes, watched.count, watched.step * item_bytes, last, held_at)
