"""A native program as a callable of flat values, whatever they are: natively where they fit, else through NumPy."""

import ctypes
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from pullback.backends.interpreter import GuardFailure
from pullback.backends.native.entry.arenas import aligned_block
from pullback.backends.native.entry.argument_steps import Check, Fetch, Leaf, Step, argument_steps, leaf_like, steps_of
from pullback.backends.native.entry.binding import bind, bound_frames
from pullback.backends.native.entry.callables import is_native, native_subclass
from pullback.backends.native.entry.frames import Frame
from pullback.backends.native.entry.machine_programs import NativeProgram
from pullback.backends.native.entry.result_trees import NotNativeError, Out
from pullback.backends.native.entry.templates import Template
from pullback.core.types import ArrayType

#: Calls through Python after which a program gets a frame of its own; most are called by plans, which have theirs.
CALLS_WITHOUT_FRAME = 2

_C_CONTIGUOUS, _ALIGNED = 0x0001, 0x0100  # NumPy's flags, as in its headers
_IN_ORDER = _C_CONTIGUOUS | _ALIGNED

_Array = np.ndarray[Any, Any]
_PYTHON_NUMBERS = {"b": bool, "i": int, "f": float}


class _PythonEntry:
    """The parts of a program that calls in Python need."""

    def __init__(self, program: NativeProgram, otherwise: Callable[..., Any]) -> None:
        self.program = program
        self.otherwise = otherwise
        self._count = len(program.inputs) - len(program.constants)
        self._run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(program.address)
        self._constants = [np.require(constant, requirements=("C", "A")) for constant in program.constants]
        self._calls: dict[tuple[type, ...], int] = {}

    def _computed(self, values: Sequence[Any], outputs: Sequence[_Array]) -> bool:
        """Run the program in memory of this call alone; whether it computed these arrays."""
        program = self.program
        try:
            inputs = [
                value
                if _is_in_order(value, type_)  # asked first: NumPy takes 2 µs to answer that nothing is required
                else np.require(value, type_.dtype, ("C", "A"))
                for value, type_ in zip(values, program.inputs, strict=False)
            ]
        except OverflowError:  # a Python integer that no machine integer holds
            return False
        for value, type_ in zip(inputs, program.inputs, strict=False):
            if value.shape != type_.shape:
                raise ValueError(f"a program for {type_} was called with an array of shape {value.shape}")
        arrays = (*inputs, *self._constants, *outputs, aligned_block(program.arena_nbytes))
        return not self._run((ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)))

    def _bind(self, args: tuple[Any, ...]) -> None:
        """Let further calls with arguments like these be native."""
        kinds = tuple(map(type, args))
        calls = self._calls[kinds] = self._calls.get(kinds, 0) + 1
        if calls != CALLS_WITHOUT_FRAME + 1 or not is_native(self):
            return
        try:
            frame = Frame(self._template(args))
        except NotNativeError:
            return
        bind(self, [frame, *bound_frames(self)])

    def _template(self, args: tuple[Any, ...]) -> Template:
        raise NotImplementedError  # by each kind of program, which knows how its arguments are laid out


class Runner(_PythonEntry):
    """Call it with the inputs of a program, constants left out: it gives the outputs, or what a guard saw.

    Arrays of any layout are taken, copied where the program cannot read them. Values that the program declines are for
    `otherwise`, the interpreter's program for the same inputs and constants.
    """

    def __call__(self, *values: Any) -> tuple[Any, ...] | GuardFailure:
        """Run in memory of this call alone."""
        if len(values) != self._count:
            raise TypeError(f"a program of {self._count} inputs was called with {len(values)}")
        ordered = tuple(map(in_order, values))
        if any(map(operator.is_not, ordered, values)):
            return self(*ordered)
        self._bind(values)
        program = self.program
        outputs = [np.empty(type_.shape, type_.dtype) for type_ in program.outputs]
        if not self._computed(values, outputs):
            return self.otherwise(*values, *program.constants)  # type: ignore[no-any-return]  # by construction
        results = [_plain(output, type_) for output, type_ in zip(outputs, program.outputs, strict=True)]
        for number, (seen, value) in enumerate(zip(program.guards, results[len(program.results) :], strict=True)):
            if type(seen)(value) != seen:
                return GuardFailure(number, type(seen)(value))
        return tuple(results[: len(program.results)])

    def _template(self, args: tuple[Any, ...]) -> Template:
        return Template(self.program, self._count, argument_steps(args), plain_form(self.program.results))


class Writer(_PythonEntry):
    """Call it with the inputs of a program without guards, and arrays that its outputs are written into.

    What it takes is as for a `Runner`; arrays that are written overlap with none that is read. Those that are `listed`, by
    their numbers, inputs first, are in a list that comes before the others, at these places, and in C order.
    """

    def __init__(self, program: NativeProgram, otherwise: Callable[..., Any], listed: Mapping[int, int]) -> None:
        super().__init__(program, otherwise)
        self._listed = dict(listed)

    def __call__(self, *args: Any) -> None:
        """Run with scratch memory of this call alone."""
        arrays = self.spread(args)
        if len(arrays) != self._count + len(self.program.outputs):
            raise TypeError(f"a program of {self._count} inputs was called with {len(arrays)} inputs and outputs")
        values, outs = arrays[: self._count], arrays[self._count :]
        read = len(args) - sum(number not in self._listed for number in range(self._count, len(arrays)))
        ordered = tuple(map(in_order, args[:read]))
        if any(map(operator.is_not, ordered, args)):
            self(*ordered, *args[read:])
            return
        self._bind(args)
        outputs: Sequence[Any] = [
            out if _is_in_order(out, type_) else np.empty(type_.shape, type_.dtype)
            for out, type_ in zip(outs, self.program.outputs, strict=True)
        ]
        if not self._computed(values, outputs):
            outputs = self.otherwise(*values, *self.program.constants)
        for out, output in zip(outs, outputs, strict=True):
            if out is not output:
                out[...] = output

    def spread(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """All arrays in the order of the program."""
        if not self._listed:
            return args
        arrays = list(args[1:])
        for number in sorted(self._listed):
            arrays.insert(number, args[0][self._listed[number]])
        return arrays

    def _template(self, args: tuple[Any, ...]) -> Template:
        inputs = [leaf_like(place, value) for place, value in enumerate(self.spread(args)[: self._count])]
        first = len(self.program.inputs)
        outputs = [Leaf(first + number, Check.WRITTEN, np.ndarray) for number in range(len(self.program.outputs))]
        steps: list[Step] = []
        if self._listed:
            steps.append(Step(Fetch.ARGUMENT, 0, Check.LIST, list, length=len(args[0])))
        others = []
        for number, leaf in enumerate([*inputs, *outputs]):
            if number in self._listed:
                steps.append(Step(Fetch.LIST_ITEM, self._listed[number], leaf.check, leaf.expected, 0, leaf.place))
            else:
                others.append(leaf)
        steps.extend(steps_of(others, first=bool(self._listed)))
        return Template(self.program, len(args), steps, None)


def writer(
    program: NativeProgram, otherwise: Callable[..., Any], listed: Mapping[int, int] = MappingProxyType({})
) -> Writer:
    """A program as a callable that writes into arrays, of which some are listed."""
    made: Writer = native_subclass(Writer)(program, otherwise, listed)
    return made


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


def in_order(value: Any) -> Any:
    """A value as native programs read it: an array in C order, the very one where it is."""
    if type(value) is not np.ndarray or value.flags.num & _IN_ORDER == _IN_ORDER:
        return value
    return value.copy()


def _is_in_order(value: Any, type_: ArrayType) -> bool:
    """True if a program for a type can read or write an array as it is."""
    return (
        type(value) is np.ndarray
        and value.dtype == type_.dtype
        and value.flags.num & _IN_ORDER == _IN_ORDER
        and value.shape == type_.shape
    )


def _plain(output: np.ndarray[Any, Any], type_: ArrayType) -> Any:
    return output.item() if type_.weak else output if type_.shape else output[()]
