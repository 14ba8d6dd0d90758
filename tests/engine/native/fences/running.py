"""Native programs run again with everything they are given beside closed pages, whenever one runs in Python."""

import ctypes
import itertools

import numpy as np
from tests.engine.native.fences.memory import PAGE, close_page, fenced, fenced_copy, fenced_empty

from pullback.backends.native import memory
from pullback.backends.native.entry import callable_program

#: How many programs ran between fences.
count = itertools.count()


class _Pages(int):
    """Bytes of an arena, some pages of which are closed: those behind each value."""

    closed = ()


def install():
    """Run programs of this process beside closed pages as well, wherever Python calls them: a plan does so at its first call.

    What they compute there has the same bits, whatever was in the memory that they were given to write to.
    """
    memory.ALIGNMENT = 8
    memory._place = _placed_apart
    computed = callable_program._PythonEntry._computed

    def checked(plain, values, outputs):
        done = computed(plain, values, outputs)
        next(count)
        for at_end in (True, False):
            _compare(plain, values, outputs, done, at_end=at_end)
        return done

    callable_program._PythonEntry._computed = checked


def _placed_apart(slots):
    """Every value of an arena on pages of its own, at their end, and a page that is to be closed behind them."""
    closed = []
    for slot in slots:
        first = closed[-1] + PAGE if closed else 0
        closed.append(first + -(-slot.nbytes // PAGE) * PAGE)
        slot.offset = closed[-1] - slot.nbytes
    total = _Pages(closed[-1] + PAGE if closed else 0)
    total.closed = tuple(closed)
    return total


def _compare(plain, values, outputs, done, *, at_end):
    program = plain.program
    try:
        given = [np.require(value, type_.dtype, "C") for value, type_ in zip(values, program.inputs, strict=False)]
    except OverflowError:  # a Python integer that is not for native code
        return
    given += [np.require(constant, requirements="C") for constant in program.constants]
    read = [fenced_copy(value, at_end=at_end) for value in given]
    written = [fenced_empty(type_.shape, type_.dtype, at_end=at_end) for type_ in program.outputs]
    arena = fenced(program.arena_nbytes, at_end=at_end)
    for place in program.arena_nbytes.closed:
        close_page(arena.ctypes.data + place)
    table = [array.ctypes.data for array in (*read, *written, arena)]
    status = plain._run((ctypes.c_void_p * len(table))(*table))
    assert (status == 0) == done
    for own, before in zip(read, given, strict=True):
        assert own.tobytes() == before.tobytes(), "an input was written to"
    if done:
        for number, (ours, theirs) in enumerate(zip(written, outputs, strict=True)):
            assert ours.tobytes() == theirs.tobytes(), f"output {number} is {ours} and was {theirs}"
