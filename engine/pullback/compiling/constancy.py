"""Constant values: those that always do the same while they are the same object, and plain classes."""

import re
import sys
import types
from datetime import date, time, timedelta, timezone
from enum import Enum, EnumMeta
from functools import cached_property, lru_cache
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pullback.compiling.captured_references import UNASSIGNED
from pullback.compiling.code_facts import READING_FILES
from pullback.compiling.side_effects import is_generator, is_repeatable
from pullback.core.primitive import Primitive, TracedValue
from pullback.core.types import ArrayType

#: Types whose values cannot change, and are compared by what they are.
FIXED: tuple[Any, ...] = (
    *(
        int,
        float,
        complex,
        str,
        bytes,
        bool,
        type(None),
        type(Ellipsis),
        np.generic,
        np.dtype,
        Enum,
        range,
        slice,
        frozenset,
    ),
    *(
        date,
        time,
        timedelta,
        timezone,
        PurePath,
        re.Pattern,
        TypeVar,
        types.GenericAlias,
        types.UnionType,
    ),
    *map(type, (sys.float_info, sys.int_info, sys.hash_info, sys.version_info)),
)
#: Others, by name: importing their modules takes 4 ms, and who has a value of them has imported them.
_FIXED_BY_NAME = frozenset({("decimal", "Decimal"), ("fractions", "Fraction")})

#: Packages whose functions and classes do what they do whatever is assigned in them.
CONSTANT_PACKAGES = frozenset(
    {
        *("pullback", "numpy", "scipy", "math", "cmath", "operator", "functools", "itertools", "typing", "collections"),
        *(
            "dataclasses",
            "abc",
            "numbers",
            "copy",
            "copyreg",
            "contextlib",
            "enum",
            "types",
            "warnings",
            "logging",
            "string",
        ),
        *("re", "textwrap", "bisect", "heapq", "statistics", "fractions", "weakref", "reprlib", "pprint", "json"),
        *("__future__", "_thread", "threading", "datetime", "decimal", "pathlib"),
    }
)
#: Packages whose functions have effects, which are noticed while recording.
EFFECTIVE_PACKAGES = frozenset({"warnings", "logging", "threading", "weakref", "pathlib", "datetime"})


class _Pair(NamedTuple):
    one: int


#: Types of the members of classes written in C and of named tuples, and of slots.
C_DESCRIPTORS = (
    *(types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType),
    *(types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.BuiltinFunctionType),
    type(vars(_Pair)["one"]),
)
#: Types of the members of classes whose attributes can be read without running other code than is looked at.
_DESCRIPTORS = (types.FunctionType, staticmethod, classmethod, property, cached_property, type, type(lru_cache(len)))
_WRITTEN_IN_C = (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType)
#: Attributes of functions that say nothing of what they do.
HARMLESS_ATTRIBUTES = frozenset({"__wrapped__", "__isabstractmethod__"})
_OF_MEMBERS = frozenset({"_value_", "_name_", "__objclass__", "_sort_order_"})
_LOCKS = frozenset({"lock", "RLock"})
#: The type of functions that remember what they gave.
LRU_CACHE = type(lru_cache(len))
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement, or as if


def is_constant(value: Any) -> bool:  # noqa: PLR0911 - one for each kind
    """True if a value, as long as it is the same object, always does the same."""
    if isinstance(value, types.ModuleType):
        return package(value.__name__) in CONSTANT_PACKAGES
    if isinstance(value, type):
        return is_constant_class(value)
    if isinstance(value, types.FunctionType):
        return of_constant_package(value) and not value.__closure__ and not value.__dict__.keys() - HARMLESS_ATTRIBUTES
    if isinstance(value, types.BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, types.ModuleType | type)
    if isinstance(value, np.ufunc):
        return "O" not in "".join(value.types[:1])  # else a Python function is behind it (np.frompyfunc)
    if type(value) in (tuple, frozenset):
        return all(map(is_constant, value))
    if type(value) is slice:
        return all(map(is_constant, (value.start, value.stop, value.step)))
    # NumPy's functions with dispatch are objects of a type of NumPy's own.
    is_numpy_function = type(value).__name__ == "_ArrayFunctionDispatcher"
    # Types of typing (`list[float]`, `Callable[..., float]`) are for readers; locks are held while the function runs.
    is_for_others = type(value).__module__ == "typing" or (
        type(value).__module__ == "_thread" and type(value).__name__ in _LOCKS
    )
    return (
        (is_fixed(value) and is_constant_class(type(value)))
        or isinstance(value, Primitive)
        or is_numpy_function
        or is_for_others
        or value is UNASSIGNED
    )


def is_constant_class(class_: type) -> bool:
    """True if a class does what it does whatever is assigned in it."""
    # What `types.new_class` and `dataclasses.make_dataclass` make seems to be of the module `types`.
    return (
        not class_.__flags__ & _HEAP_TYPE
        or (package(class_.__module__) in CONSTANT_PACKAGES and class_.__module__ != "types")
        or (isinstance(class_, EnumMeta) and _is_plain_enumeration(class_))
    )


def _is_plain_enumeration(class_: EnumMeta) -> bool:
    """True if an enumeration has members with constant values, and nothing else."""
    return (
        all(map(is_constant_class, class_.__mro__[1:]))
        and not any(map(added_to, class_.__members__.values()))
        and all(
            is_constant(one) if isinstance(one, types.FunctionType) else one is None or isinstance(one, Enum)
            for key, member in vars(class_).items()
            for one in functions_of(member)
            if isinstance(one, types.FunctionType) or not key.startswith("_")
        )
    )


def added_to(value: Any) -> dict[str, Any]:
    """The attributes that a class of the user's adds to a value of a type whose values cannot change."""
    attributes: dict[str, Any] = getattr(value, "__dict__", {})
    is_plain_member = (
        isinstance(value, Enum) and attributes.keys() <= _OF_MEMBERS and is_constant(attributes["_value_"])
    )
    return {} if is_plain_member else attributes


def is_fixed(value: Any) -> bool:
    """True if a value is of a type whose values cannot change, but for what a class derived from it adds."""
    if isinstance(value, np.void):
        return False  # a row of a structured array, which it is a view of
    if issubclass(type(value), TracedValue):
        return False  # left by an earlier call; it answers `isinstance` as the number it stood for
    return isinstance(value, FIXED) or (type(value).__module__, type(value).__name__) in _FIXED_BY_NAME


def is_suspicious(value: Any) -> bool:
    """True if a constant value may do more than compute from its arguments, so that recording has to be watched."""
    if isinstance(value, types.BuiltinFunctionType):
        return not is_repeatable(value)
    if isinstance(value, types.FunctionType) or type(value).__name__ == "_ArrayFunctionDispatcher":
        return value.__name__ in READING_FILES or package(value.__module__) in EFFECTIVE_PACKAGES
    if isinstance(value, types.ModuleType):
        return package(value.__name__) in EFFECTIVE_PACKAGES or value.__name__.startswith("numpy.random")
    if isinstance(value, type):
        return (
            package(value.__module__) in EFFECTIVE_PACKAGES or value is date or getattr(value, "__base__", None) is date
        )
    return is_generator(value) or isinstance(value, Path)


def of_constant_package(function: types.FunctionType) -> bool:
    """True if a function is written in a constant package."""
    # By its globals: __module__ can be copied from elsewhere (functools.wraps).
    return package(str(function.__globals__.get("__name__"))) in CONSTANT_PACKAGES


_OF_DATACLASSES = frozenset({
    "__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__lt__", "__le__", "__gt__", "__ge__", "__replace__",
})  # fmt: skip


def has_plain_metaclass(class_: type) -> bool:
    """True if a class does what its members show."""
    return type(class_) is type or type(class_).__module__ in ("abc", "enum", "typing")


def is_plain_class(class_: type) -> bool:
    """True if reading an attribute of an instance gives what is in it or in its class."""
    hooks = ("__getattr__", "__getattribute__", "__setattr__")
    return has_plain_metaclass(class_) and not any(
        hook in vars(base) and not _is_frozen_dataclass(base, hook)
        for base in class_.__mro__
        if base.__flags__ & _HEAP_TYPE
        and (not is_constant_class(base) or package(base.__module__) in ("pullback", "numpy", "scipy"))
        for hook in hooks
    )


def is_plain_member(member: Any) -> bool:
    """True if a member of a class gives the same value on each reading."""
    return (
        isinstance(member, _DESCRIPTORS)
        or not hasattr(type(member), "__get__")
        or package(type(member).__module__) in ("pullback", "enum")  # a plan as a method, a member of an enumeration
    )


def is_made_by_dataclass(member: Any) -> bool:
    """True if `dataclasses.dataclass` wrote a method out of the names of the fields."""
    code = getattr(member, "__code__", None)
    return (
        code is not None
        and code.co_name in _OF_DATACLASSES
        and code.co_filename == "<string>"
        and code.co_firstlineno <= 2
    )


def package(name: str | None) -> str:
    """The package that a module is in; what was made by hand is in none."""
    return str(name).partition(".")[0]


def functions_of(member: Any) -> tuple[Any, ...]:
    """The function that a member of a class runs, or the value that it holds."""
    if isinstance(member, staticmethod | classmethod):
        return (member.__func__,)
    if isinstance(member, property | types.DynamicClassAttribute):  # the latter stands for a member of an enumeration
        return (member.fget, member.fset, member.fdel)
    return (member.func,) if isinstance(member, cached_property) else (member,)


def slots_of(class_: type) -> list[str]:
    """Names of the slots of a class and of those it inherits."""
    return [
        key
        for base in class_.__mro__
        for key, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType) and key != "__dict__"
    ]


def holds_what_cannot_be_seen(class_: type) -> bool:
    """True if instances are more than their attributes: they are dicts, say, or what a module written in C makes."""
    return class_ is not types.SimpleNamespace and any(
        isinstance(member, _WRITTEN_IN_C) and member.__objclass__ is base
        for base in class_.__mro__
        if base is not object
        for member in vars(base).values()
    )


def _is_frozen_dataclass(class_: type, hook: str) -> bool:
    parameters = vars(class_).get("__dataclass_params__")
    return hook == "__setattr__" and getattr(parameters, "frozen", False)


def is_same(now: Any, then: Any) -> bool:
    """True if two values are one object, or equal ones of a type whose values cannot change.

    Sets are the same if they are walked through in the same order, too.
    """
    if now is then:
        return True
    kind = type(now)
    if kind is not type(then):
        return False
    if kind is ArrayType:
        return bool(now == then)
    if kind is not tuple and (added_to(now) or added_to(then) or not (isinstance(now, tuple) or is_fixed(now))):
        return False
    if isinstance(now, tuple | frozenset):
        return len(now) == len(then) and all(map(is_same, now, then))
    # repr tells -0.0 from 0.0, and the numbers of a slice by their types; == does not.
    return bool(now == then) and (isinstance(now, str) or repr(now) == repr(then))
