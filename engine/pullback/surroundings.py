"""What a function takes from around it: closures, globals and defaults.

A compiled function must not go on with yesterday's values. Arrays it meets are inputs of the plan, read again on each
call from where they were found; numbers and functions are remembered and compared on each call, and a change means
recording anew. What cannot be watched (an object whose attributes may change, an array that comes from nowhere we can
look) keeps the function on the tape, with the reason.
"""

import dis
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from pullback.ir.graph import ArrayType

_Getter = Callable[[], Any]
_FIXED = (int, float, complex, str, bytes, bool, type(None), np.generic, np.dtype)
_STATELESS = (types.ModuleType, type, np.ufunc, types.BuiltinFunctionType)
_STABLE_PACKAGES = ("pullback", "numpy", "scipy", "math", "builtins", "operator", "functools", "typing")

_UNASSIGNED = object()


class Surroundings:
    """Where the arrays that a function meets are found, and whether the rest is as it was."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.obstacle: str | None = None
        self._arrays: dict[int, _Getter] = {}
        self._remembered: list[tuple[_Getter, Any]] = []
        self._visited: set[int] = set()
        self._look_at("the function", _always(function))

    def getter(self, array: np.ndarray[Any, Any]) -> _Getter | None:
        """How to read a captured array again; None if it is not one of the surroundings."""
        return self._arrays.get(id(array))

    def watch(self, getter: _Getter, value: Any) -> None:
        """Compare one thing more on each call."""
        self._remembered.append((getter, value))

    def unchanged(self) -> bool:
        """Whether everything that is not an array is still what it was."""
        for getter, value in self._remembered:
            now = getter()
            if now is not value and not _is_same(now, value):
                return False
        return True

    def _look_at(self, name: str, getter: _Getter) -> None:
        value = getter()
        if isinstance(value, np.ndarray):
            self._arrays[id(value)] = getter
        elif isinstance(value, _FIXED):
            self._remembered.append((getter, value))
        elif isinstance(value, _STATELESS) or id(value) in self._visited:
            pass
        else:
            self._visited.add(id(value))
            self._look_inside(name, getter, value)

    def _look_inside(self, name: str, getter: _Getter, value: Any) -> None:
        if isinstance(value, types.FunctionType):
            if name != "the function":  # the plan itself holds that one
                self._remembered.append((getter, value))
            if value.__module__.partition(".")[0] not in _STABLE_PACKAGES:
                self._look_into_function(value)
        elif isinstance(value, partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self._look_at(name, _always(part))
        elif isinstance(value, tuple | list | dict):
            self._remembered.append((lambda: _length(getter()), len(value)))
            for key in value if isinstance(value, dict) else range(len(value)):
                self._look_at(f"{name}[{key!r}]", _item_of(getter, key))
        elif type(value).__module__.partition(".")[0] not in _STABLE_PACKAGES:
            self.obstacle = (
                f"{name} is a {type(value).__name__}, whose attributes may change between calls; "
                "pass what is needed of it as an argument"
            )

    def _look_into_function(self, function: types.FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if _contents(cell) is not _UNASSIGNED:
                self._look_at(name, partial(_contents, cell))
        namespace = function.__globals__
        for name in _names_used(function.__code__):
            if name in namespace:
                self._look_at(name, partial(namespace.get, name))
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._look_at("a default", _always(default))


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


def _names_used(code: types.CodeType) -> Iterator[str]:
    """Globals that a function reads, and functions inside it; `co_names` would also have the names of attributes."""
    yield from {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_used(constant)


def _length(container: Any) -> int | None:
    return len(container) if isinstance(container, tuple | list | dict) else None


def _is_same(now: Any, then: Any) -> bool:
    return type(now) is type(then) and isinstance(now, (*_FIXED, ArrayType)) and bool(now == then)
