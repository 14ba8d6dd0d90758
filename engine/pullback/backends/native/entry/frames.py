"""Frames: words of memory, and the objects they refer to, which live as long as the frame is used.

The words refer to objects without counting it; the frame keeps them alive. Only the arrays that were returned last are
references of the frame's own, which the frame gives up when it goes. It never goes while a run is on in it: then what it
has is left for later.
"""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from pullback.backends.native.entry.arenas import Arena
from pullback.backends.native.entry.machine_programs import NativeProgram
from pullback.backends.native.entry.templates import CLOSED, IDLE, OUTPUT, RUNNING, WATCH, Head, Template, watch_words
from pullback.dataclass import dataclass

_Array = np.ndarray[Any, Any]

# Functions of our own: what ctypes.pythonapi has by name is shared with everybody, and so are its argument types.
_hold = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_IncRef", ctypes.pythonapi))
_let_go = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_DecRef", ctypes.pythonapi))


@dataclass(slots=True)
class _Memory:
    """The objects that the words of a frame refer to.

    When Python exits, a frame may go after the variables of this module: what its end needs are defaults of parameters.
    """

    words: _Array
    template: Template
    arena: Arena
    constants: list[_Array]
    given: Any = ()
    arrays: list[int] = field(default_factory=list)
    """Words that are references of the frame's own."""

    def let_go(self, busy: int = Head.BUSY, closed: int = CLOSED, let_go: Callable[[int], None] = _let_go) -> None:
        """Give up the references; nothing runs here any more."""
        self.words[busy] = closed
        for place in self.arrays:
            address, self.words[place] = int(self.words[place]), 0
            if address:
                let_go(address)


#: Memory of frames that were given up during a run.
_in_flight: list[_Memory] = []


class Frame:
    """A copy of a template in which calls run; frames of one program may share its arena, and then run one at a time."""

    def __init__(self, template: Template, arena: Arena | None = None) -> None:
        program = template.program
        words = template.words.copy()
        words[template.inside] += words.ctypes.data
        arena = arena or Arena(program.arena_nbytes)
        constants = [np.require(constant, requirements=("C", "A")) for constant in program.constants]
        first = template.table + len(program.inputs) - len(constants)
        for place, constant in enumerate(constants, first):
            words[place] = constant.ctypes.data
        words[template.table + len(program.inputs) + len(program.outputs)] = arena.block.ctypes.data
        words[Head.LOCK] = arena.lock.ctypes.data
        outputs = range(template.outputs, template.outputs + OUTPUT * len(program.outputs), OUTPUT)
        self.words = words
        self._memory = _Memory(
            words, template, arena, constants, (), [place for at in outputs for place in (at, at + 1)]
        )
        self._following: Frame | None = None

    @property
    def template(self) -> Template:
        """The template that its words are a copy of."""
        return self._memory.template

    @property
    def program(self) -> NativeProgram:
        """The program that runs in it."""
        return self.template.program

    @property
    def address(self) -> int:
        """Address of the first word."""
        return int(self.words.ctypes.data)

    @property
    def is_busy(self) -> bool:
        """True if a run is on in it."""
        return bool(self.words[Head.BUSY])

    @property
    def runs_left(self) -> int:
        """The number of calls that may still run in it; negative if it is not limited."""
        return int(self.words[Head.RUNS])

    def adopt(self, results: tuple[Any, ...]) -> None:
        """Take arrays that an earlier run made, to be written again when nothing else refers to them."""
        for value, place in zip(results, self._memory.arrays[::2], strict=False):
            if type(value) is np.ndarray and self.words[place] == 0:
                _hold(id(value))
                self.words[place] = id(value)

    def give(self, values: Mapping[int, Any], held: Mapping[int, bytes]) -> None:
        """Put inputs in that are not fetched on each call; and of those that are watched, what they hold."""
        template, words = self._memory.template, self.words
        words[Head.RUNS] = template.words[Head.RUNS]
        for place, value in values.items():
            if template.program.inputs[place].shape == ():
                number = template.number(place)
                words[number : number + 1].view(template.program.inputs[place].dtype)[0] = value
            else:
                words[template.table + place] = value.ctypes.data
        for number, watched in enumerate(template.watched):
            begin = template.watches + WATCH * number
            words[begin : begin + WATCH] = watch_words(watched, values[watched.input], held[watched.input])
        self._memory.given = (values, held)

    def take_back(self) -> None:
        """Forget what was given."""
        self._memory.given = ()

    def follow_with(self, other: "Frame | None") -> None:
        """Try another frame where a call does not fit this one."""
        self._following = other
        self.words[Head.NEXT] = 0 if other is None else id(other.words)

    def __del__(
        self,
        busy: int = Head.BUSY,
        running: int = RUNNING,
        idle: int = IDLE,
        in_flight: list[_Memory] = _in_flight,
    ) -> None:
        memory: _Memory | None = getattr(self, "_memory", None)
        if memory is not None and memory.words[busy] == running:  # in another thread
            in_flight.append(memory)
        elif memory is not None and memory.words[busy] == idle:
            memory.let_go()


def let_go_of_finished() -> None:
    """Give up what belonged to frames whose last run is over."""
    if not _in_flight:
        return
    finished = [memory for memory in _in_flight if memory.words[Head.BUSY] != RUNNING]
    _in_flight[:] = [memory for memory in _in_flight if memory.words[Head.BUSY] == RUNNING]
    for memory in finished:
        memory.let_go()
