"""What a function takes from around it: closures, globals and defaults.

A compiled function must not go on with yesterday's values. Numbers, functions and small arrays are remembered and compared
on each call, and a change means recording anew. What cannot be compared cheaply and surely (large arrays, objects whose
attributes may change, iterators, modules that are not known to be constant) keeps the function on the tape, with the
reason. The list is of what is allowed: anything unknown is an obstacle.
"""

import dis
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from pullback.custom import CustomPrimitive
from pullback.gradients import Gradient
from pullback.ir.types import ArrayType
from pullback.primitive import Primitive
from pullback.rule import StatefulRule

#: Captured arrays up to this size are compared with a copy on each call; larger ones should be arguments.
LARGEST_COMPARED_BYTES = 16 * 1024

_Getter = Callable[[], Any]
_FIXED = (int, float, complex, str, bytes, bool, type(None), np.generic, np.dtype)
_CONSTANT_PACKAGES = frozenset({"pullback", "numpy", "scipy", "math", "operator", "functools", "itertools", "typing"})
_UNASSIGNED = object()


class Surroundings:
    """Where the arrays that a function meets are found, and whether everything is as it was."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.obstacle: str | None = None
        self._arrays: dict[int, _Getter] = {}
        self._remembered: list[tuple[_Getter, Any]] = []
        self._walked: set[int] = set()
        self._look_at("the function", _always(function))

    def getter(self, array: np.ndarray[Any, Any]) -> _Getter | None:
        """How to read a captured array again; None if it is not one of the surroundings."""
        return self._arrays.get(id(array))

    def watch(self, getter: _Getter, value: Any) -> None:
        """Compare one thing more on each call."""
        self._remembered.append((getter, value))

    def unchanged(self) -> bool:
        """Whether everything is still what it was."""
        for getter, value in self._remembered:
            now = getter()
            if now is not value and not _is_same(now, value):
                return False
        return True

    def _look_at(self, name: str, getter: _Getter) -> None:
        value = getter()
        if type(value) is np.ndarray and value.nbytes <= LARGEST_COMPARED_BYTES:
            self._arrays[id(value)] = getter
            self.watch(getter, _Contents(value))
        elif isinstance(value, np.ndarray):
            self.obstacle = f"{name} is an array too large to be compared on each call; pass it as an argument"
        elif type(value) in (tuple, list, dict):
            self._look_into_container(name, getter, value)
        else:
            self.watch(getter, value)
            if id(value) not in self._walked and not _is_constant(value):
                self._walked.add(id(value))
                self._look_inside(name, value)

    def _look_inside(self, name: str, value: Any) -> None:
        if isinstance(value, types.FunctionType):
            self._look_into_function(value)
        elif isinstance(value, partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self._look_at(name, _always(part))
        elif isinstance(value, types.MethodType):
            self._look_at(name, _always(value.__func__))
            self._look_at(f"what {name} is a method of", _always(value.__self__))
        elif isinstance(value, CustomPrimitive | StatefulRule):
            self.watch(lambda: value.user_functions, value.user_functions)
            for function in value.user_functions:
                self._look_at(name, _always(function))
        elif isinstance(value, Gradient) or type(value).__module__ == "pullback.compiling":
            self._look_at(name, _always(value.function))
        else:
            self.obstacle = (
                f"{name} is a {type(value).__name__}, whose attributes may change between calls; "
                "pass what is needed of it as an argument"
            )

    def _look_into_function(self, function: types.FunctionType) -> None:
        for attribute in function.__dict__.keys() - {"__wrapped__"}:
            self.obstacle = (
                f"{function.__name__} has an attribute {attribute}, which may change; pass it as an argument"
            )
        code = function.__code__
        self.watch(lambda: function.__code__, code)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._look_at(name, partial(_contents, cell))
        namespace = function.__globals__
        for name in _globals_read(code):
            self._look_at(name, partial(namespace.get, name, _UNASSIGNED))
        self._look_at("a default", lambda: function.__defaults__ or ())
        self._look_at("a default", lambda: function.__kwdefaults__ or {})
        for module in _modules_imported(code):
            if module.partition(".")[0] not in _CONSTANT_PACKAGES:
                self.obstacle = f"the function imports {module}, which may change between calls; pass what it needs"
        if _draws_random_numbers(code):
            self.obstacle = "the function draws random numbers, which differ on each call; pass them as an argument"

    def _look_into_container(self, name: str, getter: _Getter, value: Any) -> None:
        keys = tuple(value) if isinstance(value, dict) else tuple(range(len(value)))
        self.watch(lambda: _keys(getter()), keys)
        if id(value) in self._walked and not isinstance(value, tuple):
            return  # a list that holds itself
        self._walked.add(id(value))
        for key in keys:
            self._look_at(f"{name}[{key!r}]", _item_of(getter, key))


class _Contents:
    """What an array held."""

    __slots__ = ("_bytes", "_dtype", "_shape")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._shape, self._dtype, self._bytes = array.shape, array.dtype, array.tobytes()

    def matches(self, value: Any) -> bool:
        """Whether an array holds the same, bit for bit."""
        return (
            type(value) is np.ndarray
            and value.shape == self._shape
            and value.dtype == self._dtype
            and value.tobytes() == self._bytes
        )


def _is_constant(value: Any) -> bool:
    """Whether a value, as long as it is the same object, always does the same."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _CONSTANT_PACKAGES
    if isinstance(value, type):
        return value.__module__.partition(".")[0] in _CONSTANT_PACKAGES | {"builtins"}
    if isinstance(value, types.FunctionType):
        # By its globals: __module__ can be copied from elsewhere (functools.wraps).
        return str(value.__globals__.get("__name__")).partition(".")[0] in _CONSTANT_PACKAGES
    if isinstance(value, types.BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, types.ModuleType)
    # NumPy's functions with dispatch are objects of a type of NumPy's own.
    is_numpy_function = type(value).__name__ == "_ArrayFunctionDispatcher"
    return isinstance(value, (*_FIXED, np.ufunc, Primitive)) or is_numpy_function or value is _UNASSIGNED


def _contents(cell: types.CellType) -> Any:
    """What a closure's variable holds; a function that refers to itself may not be assigned yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return _UNASSIGNED


def _always(value: Any) -> _Getter:
    return lambda: value


def _item_of(getter: _Getter, key: Any) -> _Getter:
    def item() -> Any:
        try:
            return getter()[key]
        except (LookupError, TypeError):
            return _UNASSIGNED

    return item


def _keys(container: Any) -> tuple[Any, ...] | None:
    if isinstance(container, dict):
        return tuple(container)
    return tuple(range(len(container))) if isinstance(container, tuple | list) else None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _names(code: types.CodeType, *operations: str) -> set[str]:
    return {step.argval for part in _codes(code) for step in dis.get_instructions(part) if step.opname in operations}


def _globals_read(code: types.CodeType) -> set[str]:
    """Globals that a function and those inside it read; `co_names` would also have the names of attributes."""
    return _names(code, "LOAD_GLOBAL", "LOAD_NAME")


def _modules_imported(code: types.CodeType) -> set[str]:
    return _names(code, "IMPORT_NAME")


def _draws_random_numbers(code: types.CodeType) -> bool:
    return bool(_names(code, "LOAD_ATTR", "LOAD_METHOD") & {"random", "default_rng"})


def _is_same(now: Any, then: Any) -> bool:
    if isinstance(then, _Contents):
        return then.matches(now)
    if type(now) is not type(then) or not isinstance(now, (*_FIXED, ArrayType, tuple)):
        return False
    # repr tells -0.0 from 0.0, == does not.
    return bool(now == then) and (not isinstance(now, float | complex) or repr(now) == repr(then))
