"""Fingerprints of the caller's arrays that a pullback saved: it is noticed when it has changed before the pullback is called.

A reusable pullback keeps the arrays themselves, not copies. If the caller writes to one of them in between, the gradient
would be that of no function at all. NumPy's arrays do not say when they are written to, so each has a *fingerprint*: at
most `SAMPLES` of its elements, spread over all of it, first and last among them. That takes the same time at any size. It
sees what updates an array as a whole and may miss a write to single elements of a large one; `pb.debug.checksums()` reads
every element instead.

Watched are arguments and arrays that the function took from around it, as far as a rule will read them; the engine's own
temporaries that nothing else refers to.
"""

import inspect
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np

from pullback import trees
from pullback.errors import ChangedError, name_of
from pullback.traces.tape import Record
from pullback.transforms.derivative_reads import operands_read, reads_nothing

#: Elements of an array that are compared.
SAMPLES = 256
#: Arrays that one pullback watches: the arguments first, then others in the order of their use.
ARRAYS_WATCHED = 256

_every_element: ContextVar[bool] = ContextVar("pullback_checksums", default=False)


@contextmanager
def checksums() -> Iterator[None]:
    """Let pullbacks made inside the block compare every element of what they saved, not a sample.

    with pb.debug.checksums(): y, pullback = pb.vjp(f, x)
    """
    token = _every_element.set(True)
    try:
        yield
    finally:
        _every_element.reset(token)


def fingerprint(array: np.ndarray[Any, Any], *, every_element: bool) -> bytes | int:
    """The fingerprint of an array."""
    if every_element:
        return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    if array.size <= SAMPLES:
        return array.tobytes()
    step = _stride(array.size, array.shape[-1])
    in_order = array if array.flags.c_contiguous else array.T
    if in_order.flags.c_contiguous:  # views and bytes: no array is made
        line = in_order.reshape(-1)
        return line[::step].tobytes() + line[-1:].tobytes()
    return array.flat[::step].tobytes() + array.flat[-1:].tobytes()


def samples(shape: tuple[int, ...]) -> tuple[int, int]:
    """The sample of a fingerprint, in the order of memory: the number of elements without the last, and the step."""
    size = math.prod(shape)
    if size <= SAMPLES:
        return size - 1, 1
    step = _stride(size, shape[-1])
    return len(range(0, size, step)), step


@lru_cache(maxsize=1024)
def _stride(size: int, row: int) -> int:
    """A step that takes at most about `SAMPLES` of the elements, of all columns in turn."""
    step = -(-size // SAMPLES)
    while math.gcd(step, row) > 1:
        step += 1
    return step


class Watch:
    """Arrays of the caller that a derivative will read, and what they held at the end of the forward run."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], saved: Sequence[np.ndarray[Any, Any]]
    ) -> None:
        self._function = function
        self._args = args
        self._every_element = _every_element.get()
        if len(saved) > ARRAYS_WATCHED:  # arguments first: they are what callers change
            names = _names(function, args)
            saved = sorted(saved, key=lambda array: id(_owner(array)) not in names)[:ARRAYS_WATCHED]
        self._watched = [(array, fingerprint(array, every_element=self._every_element)) for array in saved]

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def watched(self) -> Sequence[tuple[np.ndarray[Any, Any], bytes | int]]:
        """The arrays, and their fingerprints."""
        return self._watched

    def check(self) -> None:
        """Raise if one of them holds something else now."""
        for array, held in self._watched:
            if fingerprint(array, every_element=self._every_element) != held:
                called = _names(self._function, self._args).get(id(_owner(array)))
                called = called or f"an array of shape {array.shape} and dtype {array.dtype} from around it"
                raise ChangedError(
                    f"{name_of(self._function)}: {called} was changed after the function ran, but the derivative needs "
                    "its old values; change a copy, or differentiate again"
                )


def _owner(array: np.ndarray[Any, Any]) -> Any:
    """The array whose memory this one lies in."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def saved_arrays(records: Sequence[Record]) -> list[np.ndarray[Any, Any]]:
    """The arrays that derivatives will read and that no application on the tape made, each once."""
    made: set[int] = set()
    candidates: list[Any] = []
    for record in records:
        primitive = record.primitive
        if not primitive.aliases_operand:  # else it may be the memory of another array
            made.update(map(id, record.y)) if type(record.y) is tuple else made.add(id(record.y))
        if not reads_nothing(primitive):
            reads = operands_read(primitive, tuple([place is not None for place in record.places]))
            candidates.extend(operand for operand, is_read in zip(record.operands, reads, strict=True) if is_read)
            candidates.extend(primitive.held)
    saved: dict[Any, np.ndarray[Any, Any]] = {}
    for array in candidates:
        if type(array) is np.ndarray and not array.dtype.hasobject and id(_owner(array)) not in made:
            place = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
            saved.setdefault(place, array)
    return list(saved.values())


def _names(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[int, str]:
    """The names of the arguments, by the arrays whose memory they lie in."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        parameters = []
    names: dict[int, str] = {}
    for place, argument in enumerate(args):
        called = f"argument {parameters[place]}" if place < len(parameters) else f"argument {place}"
        for leaf in trees.flatten(argument)[0]:
            if issubclass(type(leaf), np.ndarray):
                names.setdefault(id(_owner(leaf)), called if leaf is argument else f"a part of {called}")
    return names
