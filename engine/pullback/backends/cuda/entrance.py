"""Calls of a captured plan by the native entry: no Python runs between the caller and `cuGraphLaunch`.

    entrance = replayed.entrance()     # of the latest call; None where it did more than launch
    Frame(template, entrance.arena())  # the template asks entrance.questions() and, of each argument, entrance.inputs()

A graph works on the memory of one frame of the plan's state, and on arguments at the addresses that it was told last. The native
entry may launch it while that is so: it asks each argument where it lies and each result whether anybody has it, by functions of PyTorch that are
written in C. A call in Python that takes the frame ends this, before it changes anything, and a call that changed nothing begins it again.
"""

import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from pullback.backends.cuda.state import ALONE, memory_count
from pullback.backends.native.entry import Arena, NativeProgram, Question
from pullback.backends.native.entry.templates import CLOSED, IDLE, WORD, Head
from pullback.devices.cuda.eager import DEVICE, DeviceArray

#: Frames of the native entry that are made for one frame of a plan's state; from then on calls that fit none go through Python.
ENTRANCES_TRIED = 8

Expectation: TypeAlias = tuple[Callable[..., Any], Any]
"""A function that runs no Python, and what it has to say."""

_DTYPE, _REQUIRES_GRAD, _GRAD_FN = map(attrgetter, ("dtype", "requires_grad", "grad_fn"))


class Entrance:
    """The things that a call looks at, the graph that it launches, and the way to its results."""

    def __init__(
        self,
        owner: Any,
        launch: "Launch",
        tensors: Sequence[Tensor],
        arrays: Sequence[Any],
        places: Sequence[int],
        graph: Any,
    ) -> None:
        self._owner = owner
        self._launch = launch
        self._tensors = tensors
        self._arrays = arrays
        self._places = tuple(places)
        self._graph = graph
        self._sets = arrays[-1]
        self._results = [arrays[place] for place in places]
        self._storages = [tensor.untyped_storage() for tensor in self._results]
        addresses = [tensor.data_ptr() for tensor in (*tensors, *self._results)]
        place = (id(graph), launch.words, addresses, [*map(id, (*self._results, *self._storages))])
        self._entered = EntranceFrame(place, self._storages)

    @cached_property
    def program(self) -> NativeProgram:
        """The program, which takes and gives nothing that is no Python object."""
        nbytes = WORD * len(self._launch.words)
        return NativeProgram(_launch_address(), (), (), arena_nbytes=nbytes, releases=True, owner=self._owner)

    def inputs(self) -> list[list["Expectation"]]:
        """The questions about the tensor of each argument."""
        return [_where(tensor) for tensor in self._tensors]

    def questions(self) -> list[Question]:
        """All other questions."""
        count: Any = memory_count  # else there is no entrance
        return [
            *(Question(function, expected) for function, expected in self._launch.questions),
            Question(threading.get_ident, threading.get_ident()),
            Question(os.getpid, os.getpid()),
            *(one for tensor in self._results for one in _whether_alone(tensor)),
            *(Question(sys.getrefcount, _HELD_ONCE[1], address=id(storage)) for storage in self._storages),
            *(Question(partial(count, storage._cdata), ALONE[2]) for storage in self._storages),  # noqa: SLF001 - as in state.py
        ]

    def arena(self) -> Arena:
        """The scratch memory of the program: what it launches."""
        arena = Arena(WORD * len(self._launch.words))
        arena.block.view(np.uint64)[:] = self._launch.words
        return arena

    def result(
        self, finish: Callable[[tuple[Any, ...], Any], Any], again: Callable[[Any], Any]
    ) -> Callable[[Any, Any], Any]:
        """A function that gives what the caller gets, of nothing and the arguments; `again` computes the outputs of those.

        Code of others may run between the launch and the results, where garbage is collected or a signal is handled. If it called the plan,
        that call had the frame, and what is in the results is its own.
        """
        arrays, places, graph, entered = self._arrays, self._places, self._graph, self._entered

        def result(_: Any, values: Any, graph: Any = graph) -> Any:
            del graph  # which has to live as long
            made = tuple(DeviceArray(DEVICE, arrays[place]) for place in places)
            return finish(made if entered.is_open else again(values), values)

        return result

    def may_be_tried(self) -> bool:
        """True unless calls in this frame have often been others than expected."""
        self._sets.entrances += 1
        return bool(self._sets.entrances <= ENTRANCES_TRIED)

    def entered(self, words: Any) -> None:
        """Calls are entered by these words from now on."""
        self._entered.words = words
        self._sets.entered = self._entered

    def enters_again(self) -> bool:
        """True if calls may be entered as before, which they may then; a call that is on there has to see that it was left."""
        entered = self._sets.entered
        if entered is None or entered.place != self._entered.place or entered.words[Head.BUSY] == CLOSED:
            return False
        if entered.words[Head.BUSY] == IDLE:
            entered.enter(self._storages)
        return True


class Launch:
    """The words of a launch, as `launch` in entry.c, and what has to be as it is for them: functions that run no Python, and answers."""

    def __init__(self, words: tuple[int, ...], questions: Sequence[Expectation]) -> None:
        self.words = words
        self.questions = questions


class EntranceFrame:
    """A frame of the native entry that launches a graph: open while no call in Python has the frame of the state."""

    def __init__(self, place: Any, storages: Sequence[Any]) -> None:
        self.words: Any = None
        """The words of the frame, once it is made."""
        self.place = place
        self.storages = storages
        """The memory of the results by name: held, or it could be counted no more."""
        self.is_open = True

    def enter(self, storages: Sequence[Any]) -> None:
        """Let calls be entered again."""
        self.storages = storages
        self.is_open = True
        self.words[Head.RUNS] = -1

    def leave(self) -> None:
        """Send calls through Python."""
        self.words[Head.RUNS] = 0
        self.is_open = False
        self.storages = ()


def _where(tensor: Tensor) -> list[Expectation]:
    """Questions about an argument, with the answers of now."""
    asked = (Tensor.data_ptr, Tensor.size, Tensor.stride, _DTYPE, Tensor.is_conj, Tensor.is_neg)
    return [(function, function(tensor)) for function in asked]


def _whether_alone(tensor: Tensor) -> list[Question]:
    """Questions about a result: whether the list of its frame alone refers to it, and whether it is as it was."""
    asked: list[Expectation] = [
        (sys.getrefcount, _HELD_ONCE[0]),
        (weakref.getweakrefcount, 0),
        (Tensor._use_count, ALONE[1]),  # noqa: SLF001 - as in state.py
        (_REQUIRES_GRAD, False),
        (_GRAD_FN, None),
        *_where(tensor),
    ]
    return [Question(function, expected, address=id(tensor)) for function, expected in asked]


def _launch_address() -> int:
    from pullback.backends.native.entry.machine_code import launch_address  # noqa: PLC0415 - imports what compiles

    return launch_address()


def _held_once() -> tuple[int, int]:
    """The counts of references of a tensor and of its storage, each of which one list alone refers to; PyTorch may add its own."""
    tensors = [torch.empty(1)]
    storages = [tensors[0].untyped_storage()]
    plain, tensor, storage = (next(map(sys.getrefcount, held)) for held in ([object()], tensors, storages))
    return 1 + tensor - plain, 1 + storage - plain


_HELD_ONCE = _held_once()
