"""A native program as a callable of flat values, whatever they are: natively where they fit, else through NumPy."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.interpreter import Changed
from pullback.backends.native.entry.arenas import aligned_block
from pullback.backends.native.entry.binding import bind, bound_frames
from pullback.backends.native.entry.blocks import Block
from pullback.backends.native.entry.callables import is_native, native_subclass
from pullback.backends.native.entry.forms import NotNativeError, Out
from pullback.backends.native.entry.frames import Frame
from pullback.backends.native.entry.programs import NativeProgram
from pullback.backends.native.entry.steps import argument_steps
from pullback.ir.types import ArrayType

#: Calls through Python after which a program gets a frame of its own; most are called by plans, which have theirs.
CALLS_WITHOUT_FRAME = 2

_PYTHON_NUMBERS = {"b": bool, "i": int, "f": float}


class Runner:
    """Call it with the inputs of a program, constants left out: it gives the outputs, or what a guard saw.

    Arrays of any layout are taken, copied where the program cannot read them. Values that the program declines are for
    `otherwise`, the interpreter's program for the same inputs and constants.
    """

    def __init__(self, program: NativeProgram, otherwise: Callable[..., Any]) -> None:
        self.program = program
        self.otherwise = otherwise
        self._count = len(program.inputs) - len(program.constants)
        self._run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(program.address)
        self._constants = [np.require(constant, requirements=("C", "A")) for constant in program.constants]
        self._calls: dict[tuple[type, ...], int] = {}

    def __call__(self, *values: Any) -> tuple[Any, ...] | Changed:
        """Run in memory of this call alone."""
        if len(values) != self._count:
            raise TypeError(f"a program of {self._count} inputs was called with {len(values)}")
        self._bind(values)
        program = self.program
        try:
            inputs = [
                np.require(value, type_.dtype, ("C", "A")) for value, type_ in zip(values, program.inputs, strict=False)
            ]
        except OverflowError:  # a Python integer that no machine integer holds
            return self._interpreted(values)
        for value, type_ in zip(inputs, program.inputs, strict=False):
            if value.shape != type_.shape:
                raise ValueError(f"a program for {type_} was called with an array of shape {value.shape}")
        outputs = [np.empty(type_.shape, type_.dtype) for type_ in program.outputs]
        arrays = (*inputs, *self._constants, *outputs, aligned_block(program.arena_nbytes))
        if self._run((ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))):
            return self._interpreted(values)
        results = [_plain(output, type_) for output, type_ in zip(outputs, program.outputs, strict=True)]
        for number, (seen, value) in enumerate(zip(program.guards, results[len(program.results) :], strict=True)):
            if type(seen)(value) != seen:
                return Changed(number, type(seen)(value))
        return tuple(results[: len(program.results)])

    def _interpreted(self, values: Sequence[Any]) -> tuple[Any, ...] | Changed:
        result: tuple[Any, ...] | Changed = self.otherwise(*values, *self.program.constants)
        return result

    def _bind(self, values: Sequence[Any]) -> None:
        """Let further calls with values like these be native."""
        kinds = tuple(map(type, values))
        calls = self._calls[kinds] = self._calls.get(kinds, 0) + 1
        if calls != CALLS_WITHOUT_FRAME + 1 or not is_native(self):
            return
        try:
            block = Block(self.program, self._count, argument_steps(tuple(values)), plain_form(self.program.results))
        except NotNativeError:
            return
        bind(self, [Frame(block), *bound_frames(self)])


def runner(program: NativeProgram, otherwise: Callable[..., Any]) -> Runner:
    """A program as a callable."""
    made: Runner = native_subclass(Runner)(program, otherwise)
    return made


def plain_form(outputs: Sequence[ArrayType]) -> tuple[Out, ...]:
    """All outputs in a tuple: arrays, NumPy's scalars for numbers, Python's for weak ones."""
    return tuple(_plain_out(number, type_) for number, type_ in enumerate(outputs))


def _plain_out(number: int, type_: ArrayType) -> Out:
    if type_.weak:
        return Out(number, type_.dtype, _PYTHON_NUMBERS[type_.dtype.kind])
    return Out(number, type_.dtype, np.ndarray if type_.shape else np.generic)


def _plain(output: np.ndarray[Any, Any], type_: ArrayType) -> Any:
    return output.item() if type_.weak else output if type_.shape else output[()]
