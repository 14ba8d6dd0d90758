"""A native program as a callable of flat values, whatever they are: natively where they fit, else through NumPy."""

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.native.entry.arenas import aligned_block
from pullback.backends.native.entry.arguments import leaf_check
from pullback.backends.native.entry.binding import bind, bound_frames
from pullback.backends.native.entry.callables import is_native, native_subclass
from pullback.backends.native.entry.forms import NotNativeError, Out
from pullback.backends.native.entry.frames import Fetch, Frame, NativeProgram, Step
from pullback.ir.types import ArrayType

_PYTHON_NUMBERS = {"b": bool, "i": int, "f": float}


class Runner:
    """Call it with the inputs of a program, constants left out: it gives the outputs as the interpreter would.

    Values that the program declines are for `otherwise`, the interpreter's program, which takes the same.
    """

    def __init__(self, program: NativeProgram, otherwise: Callable[..., Any]) -> None:
        self.program = program
        self.otherwise = otherwise
        self._count = len(program.inputs) - len(program.constants)
        self._run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(program.address)
        self._bound: set[tuple[type, ...]] = set()
        self._arenas = _Arenas()
        self._constants = [np.require(constant, requirements=("C", "A")) for constant in program.constants]

    def __call__(self, *values: Any) -> Any:
        """Run on values in any layout, which are copied where the program cannot read them."""
        if len(values) != self._count:
            raise TypeError(f"a program of {self._count} inputs was called with {len(values)}")
        self._bind(values)
        inputs = [
            np.require(value, type_.dtype, ("C", "A"))
            for value, type_ in zip(values, self.program.inputs, strict=False)
        ]
        for value, type_ in zip(inputs, self.program.inputs, strict=False):
            if value.shape != type_.shape:
                raise ValueError(f"a program for {type_} was called with an array of shape {value.shape}")
        outputs = [np.empty(type_.shape, type_.dtype) for type_ in self.program.outputs]
        arena = self._arenas.take(self.program.arena_nbytes)
        arrays = (*inputs, *self._constants, *outputs, arena)
        status = self._run((ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)))
        self._arenas.give_back(arena)
        if status:
            return self.otherwise(*values)
        return tuple(_plain(output, type_) for output, type_ in zip(outputs, self.program.outputs, strict=True))

    def _bind(self, values: Sequence[Any]) -> None:
        """Let the next call with values like these be a native one."""
        kinds = tuple(map(type, values))
        if kinds in self._bound or not is_native(self):
            return
        self._bound.add(kinds)
        try:
            steps = [Step(Fetch.ARGUMENT, place, *leaf_check(value), input=place) for place, value in enumerate(values)]
        except NotNativeError:
            return
        bind(self, [Frame(self.program, self._count, steps, plain_form(self.program.outputs)), *bound_frames(self)])


def runner(program: NativeProgram, otherwise: Callable[..., Any]) -> Runner:
    """A program as a callable."""
    made: Runner = native_subclass(Runner)(program, otherwise)
    return made


def plain_form(outputs: Sequence[ArrayType]) -> tuple[Out, ...]:
    """All outputs in a tuple: arrays, NumPy's scalars for numbers, Python's for weak ones."""
    return tuple(plain_out(number, type_) for number, type_ in enumerate(outputs))


def plain_out(number: int, type_: ArrayType) -> Out:
    """An output as it is."""
    if type_.weak:
        return Out(number, type_.dtype, _PYTHON_NUMBERS[type_.dtype.kind])
    return Out(number, type_.dtype, np.ndarray if type_.shape else np.generic)


def _plain(output: np.ndarray[Any, Any], type_: ArrayType) -> Any:
    return output.item() if type_.weak else output if type_.shape else output[()]


class _Arenas(threading.local):
    """Blocks that calls in Python use, one after another."""

    def __init__(self) -> None:
        self._free: list[np.ndarray[Any, Any]] = []

    def take(self, nbytes: int) -> np.ndarray[Any, Any]:
        return self._free.pop() if self._free else aligned_block(nbytes)

    def give_back(self, block: np.ndarray[Any, Any]) -> None:
        self._free.append(block)
