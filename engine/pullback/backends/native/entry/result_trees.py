"""The form of a result, made of the outputs of a program: a tree of arrays and numbers, and the steps that make it.

A form is an `Out`, a `Constant`, None, an exact tuple, list or dict of forms, a `Block` of one, or what Python makes of one (`FunctionResult`).
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np

from pullback.blocks import Block, block_of
from pullback.dataclass import dataclass

Form: TypeAlias = Any


class NotNativeError(Exception):
    """Raised for calls that have to go through Python; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Out:
    """An output: as an array, as a NumPy scalar (np.generic), or as a Python float, int or bool."""

    number: int
    dtype: np.dtype[Any]
    kind: type


@dataclass(frozen=True, slots=True)
class Constant:
    """The same object each time."""

    value: Any


class Make(IntEnum):
    """The kind of thing that is made next; the numbers are those of entry.c."""

    ARRAY = 0
    SCALAR = 1
    DOUBLE = 2
    FLOAT = 3
    LONG = 4
    INT = 5
    BOOL = 6
    CONSTANT = 7
    TUPLE = 8
    LIST = 9
    DICT = 10
    VALUES = 11
    CALL = 12
    NUMPY_DOUBLE = 13


@dataclass(frozen=True, slots=True)
class ResultStep:
    """One step: a leaf is put on a stack, a container takes its parts from it."""

    kind: Make
    output: int = -1
    length: int = 0
    object: Any = None


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """The result of a function in Python for a tree of outputs and the tuple of what the program was called with."""

    function: Callable[[Any, tuple[Any, ...]], Any]
    outputs: Form


Makings: TypeAlias = tuple[ResultStep, ...]

_PYTHON_NUMBERS = {
    (float, "f8"): Make.DOUBLE,
    (float, "f4"): Make.FLOAT,
    (int, "i8"): Make.LONG,
    (int, "i4"): Make.INT,
    (bool, "b1"): Make.BOOL,
}


def makings(form: Form) -> Makings:
    """The steps that make a form, parts before what they are parts of."""
    if isinstance(form, Out):
        return (_leaf(form),)
    if isinstance(form, Constant) or form is None:
        return (ResultStep(Make.CONSTANT, object=form and form.value),)
    if isinstance(form, FunctionResult):
        return (*makings(form.outputs), ResultStep(Make.VALUES), ResultStep(Make.CALL, length=2, object=form.function))
    if isinstance(form, Block):
        layout = form.layout
        return (*makings(form.array), ResultStep(Make.CALL, length=1, object=lambda array: block_of(array, layout)))
    if type(form) is dict:
        parts = tuple(step for part in form.values() for step in makings(part))
        return (*parts, ResultStep(Make.DICT, length=len(form), object=tuple(form)))
    if type(form) in (tuple, list):
        parts = tuple(step for part in form for step in makings(part))
        return (*parts, ResultStep(Make.TUPLE if type(form) is tuple else Make.LIST, length=len(form)))
    raise NotNativeError(f"a result has a part of type {type(form).__name__}")


def _leaf(out: Out) -> ResultStep:
    if out.kind is np.ndarray:
        return ResultStep(Make.ARRAY, out.number)
    if out.kind is np.generic and out.dtype == np.float64:
        return ResultStep(Make.NUMPY_DOUBLE, out.number, object=np.float64)
    if out.kind is np.generic:
        return ResultStep(Make.SCALAR, out.number, object=out.dtype)
    kind = _PYTHON_NUMBERS.get((out.kind, out.dtype.str[1:]))
    if kind is None:
        raise NotNativeError(f"a result is a {out.kind.__name__} made of {out.dtype}")
    return ResultStep(kind, out.number)
