"""Attributes of dataclasses other than fields, and those that `__post_init__` computes from the fields.

A copy with other fields, traced ones say, would keep what was computed from the old ones, and have no derivative by it. So
`__post_init__` runs again on such a copy, as `dataclasses.replace` runs it, or an `__init__` that is not made by `dataclass` and
takes fields alone. It runs on the fields that were, too: an attribute that
depends on fields, and is not what it computes from them, was assigned since, and is refused.
"""

import dis
import inspect
import types
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import fields
from enum import Enum
from functools import cached_property, lru_cache, partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.errors import TracingError

#: Names of attributes that were found to depend on fields, by class: they are no part of the structure of an argument.
_FOUND: WeakKeyDictionary[type, set[str]] = WeakKeyDictionary()

_MISSING = object()
_T = TypeVar("_T")
_NUMBERS = (float, complex, int, np.generic, np.ndarray)
_WITHOUT_DERIVATIVE = (
    str,
    bytes,
    int,
    np.integer,
    np.bool_,
    Enum,
    np.ufunc,
    np.dtype,
    type,
    types.ModuleType,
    type(None),
)


def attributes_of(node: Any) -> dict[str, Any]:
    """The dict of the attributes of an object; an empty one where its class has none."""
    attributes: dict[str, Any] = node.__dict__ if type(node).__dictoffset__ else {}
    return attributes


def is_cached(node: Any, name: str) -> bool:
    """True if an attribute is what a `cached_property` gave."""
    return isinstance(getattr(type(node), name, None), cached_property)


def beside_fields(node: Any) -> dict[str, Any]:
    """The attributes of a dataclass that are no fields, those in slots as well."""
    found = {name: value for name, value in attributes_of(node).items() if not is_cached(node, name)}
    for name in _slots(_kind(node)):
        if (value := getattr(node, name, _MISSING)) is not _MISSING:
            found[name] = value
    for field in fields(node):
        found.pop(field.name, None)
    return found


def is_derived(kind: type, name: str) -> bool:
    """True if an attribute of this class was found to depend on fields."""
    return name in _FOUND.get(kind, ())


def may_derive(node: Any) -> bool:
    """True if a dataclass has attributes that were computed from its fields when it was made, and that may have a derivative."""
    return _initializer(_kind(node)) is not None and not all(map(_has_no_derivative, beside_fields(node).values()))


def leads_to_traced(node: Any) -> bool:
    """True if an attribute that is no field holds a traced value."""
    return any(_leads_to(value, node) for value in beside_fields(node).values())


def renew(node: Any, changed: Any) -> None:
    """Run `__post_init__` again on a copy of a dataclass that has other fields.

    Attributes that do not depend on the fields stay the objects that they are.
    """
    before, name = beside_fields(node), type(node).__name__
    made, probe = _computed(node, changed), changed
    is_over = any(_leads_to(getattr(node, field.name), node, closed=True) for field in fields(node))
    if not is_over:  # else the copy has what its fields stood for
        probe = copy(node)
    expected = made if is_over else _computed(node, probe)
    for key, value in made.items():
        was = before.get(key, _MISSING)
        if was is _MISSING:
            object.__delattr__(changed, key)
            continue
        is_traced = _leads_to(value, changed) or _leads_to(was, node)
        depends = is_traced or not _is_like(value, expected.get(key), [(changed, probe)])
        if depends:
            _FOUND.setdefault(type(node), set()).add(key)
        if not depends or not _is_like(was, expected.get(key), [(node, probe)]):
            if is_traced:
                raise TracingError(
                    f"{name}.{key}, which {name}.{_initializer(_kind(node))} computes from fields, is not what it gives for them now; "
                    f"{_remedy(name, key)}"
                )
            object.__setattr__(changed, key, was)
    for key in before.keys() - made.keys():
        object.__setattr__(changed, key, before[key])


def without_traced(node: Any) -> None:
    """Take away the attributes of a copy that hold traced values: it is a gradient or a tangent."""
    for key, value in beside_fields(node).items():
        if _leads_to(value, node):
            object.__delattr__(node, key)


def _computed(node: Any, made: Any) -> dict[str, Any]:
    """The attributes that an object with the fields of `made` is given where it is made; it keeps its fields."""
    kind = _kind(node)
    initializer = str(_initializer(kind))
    members = {field.name: getattr(made, field.name) for field in fields(made)}
    own = beside_fields(made)
    for key in own:
        object.__delattr__(made, key)
    try:
        if initializer == "__post_init__":
            made.__post_init__()
        else:
            kind.__init__(made, **{name: members[name] for name in _parameters(kind.__init__)})
    except Exception as error:
        names = ", ".join(f"{kind.__name__}.{key}" for key, value in own.items() if not _has_no_derivative(value))
        first = next(key for key, value in own.items() if not _has_no_derivative(value))
        raise TracingError(
            f"{kind.__name__}.{initializer} may compute {names} from fields, and cannot be run again for traced ones: "
            f"{type(error).__name__}: {error}; {_remedy(kind.__name__, first)}"
        ) from error
    for key, value in members.items():
        object.__setattr__(made, key, value)
    return beside_fields(made)


def _kind(node: Any) -> Any:
    return type(node)


def _remedy(name: str, key: str) -> str:
    return f"make {name}.{key} a property or a functools.cached_property"


def _once_a_class(compute: Callable[[Any], _T]) -> Callable[[Any], _T]:
    """The function with its results kept as long as the classes that they are of, which it does not keep alive."""
    known: WeakKeyDictionary[type, _T] = WeakKeyDictionary()

    def of_class(kind: Any) -> _T:
        if kind not in known:
            known[kind] = compute(kind)
        return known[kind]

    return of_class


@_once_a_class
def _slots(kind: type) -> tuple[str, ...]:
    return tuple(
        key
        for base in kind.__mro__
        for key, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType)
    )


@_once_a_class
def _initializer(kind: Any) -> str | None:
    """The name of the method that may compute attributes from fields where an object is made."""
    init: Any = kind.__init__
    if isinstance(init, types.FunctionType) and init.__code__.co_filename != "<string>":  # not made by dataclass
        names = {field.name for field in fields(kind)}
        return "__init__" if names.issuperset(_parameters(init)) else None
    function = getattr(kind, "__post_init__", None)
    reads = isinstance(function, types.FunctionType) and _reads_its_object(function.__code__)
    return "__post_init__" if reads else None


def _parameters(function: types.FunctionType) -> tuple[str, ...]:
    """The names of the parameters of a method, behind its object; `*args` and `**keywords` as well."""
    code = function.__code__
    flags = (code.co_flags & inspect.CO_VARARGS, code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount + sum(map(bool, flags))]


@lru_cache(maxsize=4096)
def _reads_its_object(code: types.CodeType) -> bool:
    """True if a method does more with its object than store attributes in it."""
    own = code.co_varnames[:1]
    if not own or own[0] in code.co_cellvars or "super" in code.co_names:
        return True
    loaded: Any = None
    for step in dis.get_instructions(code):
        if loaded is not None and step.opname != "STORE_ATTR":
            return True
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        is_load = step.opname.startswith("LOAD_FAST")
        loaded = own[0] if is_load and names[-1] == own[0] else None
        if is_load and own[0] in names[:-1]:
            return True
    return False


def _has_no_derivative(value: Any) -> bool:
    if type(value) in (tuple, list, set, frozenset):
        return all(map(_has_no_derivative, value))
    if type(value) is dict:
        return all(map(_has_no_derivative, value.values()))
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fcO"
    if isinstance(value, types.FunctionType):
        return not (value.__closure__ or value.__defaults__ or value.__kwdefaults__)
    return issubclass(type(value), _WITHOUT_DERIVATIVE)


def _leads_to(value: Any, owner: Any, *, closed: bool = False) -> bool:
    """True if something leads to a traced value, or back to the object whose attribute it is; or to one of a trace that is over."""
    waiting, seen = [value], {id(value)}
    for one in waiting:
        if issubclass(type(one), TracedValue):
            if not closed or one.traced_by.closed:
                return True
            continue
        if one is owner and not closed:
            return True
        further = [part for part in _parts(one) if id(part) not in seen]
        seen.update(map(id, further))
        waiting.extend(further)
    return False


def _parts(value: Any) -> Iterator[Any]:
    """The things that an attribute of an attribute is made of."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, tuple | list | set | frozenset):
        yield from value
    elif isinstance(value, types.MethodType):
        yield value.__self__
    elif isinstance(value, types.FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or () if not _is_empty(cell))
        yield from (value.__defaults__ or (), value.__kwdefaults__ or {})
    elif isinstance(value, partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from value.ravel().tolist()
    if not isinstance(value, type | types.ModuleType | types.FunctionType):
        yield from attributes_of(value).values()
        yield from (getattr(value, name, None) for name in _slots(_kind(value)))


def _is_empty(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 (reading it is the test)
    except ValueError:
        return True
    return False


def _is_like(value: Any, other: Any, alike: list[tuple[Any, Any]]) -> bool:  # noqa: PLR0911 - one for each kind
    """True if two things are the same numbers in the same arrangement; `alike` has pairs that are taken to be so."""
    if value is other or any(one is value and another is other for one, another in alike):
        return True
    value, other = _shown(value), _shown(other)
    for one in (value, other):
        if issubclass(type(one), TracedValue):  # it has a type, and no value
            return bool(one.traced_by.closed)
    if isinstance(value, _NUMBERS) and isinstance(other, _NUMBERS):
        own, others = np.asarray(value), np.asarray(other)
        return own.dtype == others.dtype and own.shape == others.shape and own.tobytes() == others.tobytes()
    if type(value) is not type(other):
        return False
    if isinstance(value, types.FunctionType) and value.__code__ is not other.__code__:
        return False
    if isinstance(value, types.MethodType) and value.__func__ is not other.__func__:
        return False
    if isinstance(value, dict) and list(value) != list(other):
        return False
    parts = list(_parts(value)), list(_parts(other))
    if not any(parts):
        return bool(np.all(value == other))
    alike.append((value, other))
    return len(parts[0]) == len(parts[1]) and all(
        _is_like(one, another, alike) for one, another in zip(*parts, strict=True)
    )


def _shown(value: Any) -> Any:
    """The number or array that a traced value stands for, where it has one."""
    while issubclass(type(value), TracedValue) and hasattr(value, "value"):
        value = value.value
    return value
