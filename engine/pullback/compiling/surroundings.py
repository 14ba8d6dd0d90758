"""What a function takes from around it: closures, globals, defaults, and the attributes of plain objects.

A compiled function must not go on with yesterday's values. Arrays become hidden inputs of the plan, read again on each call
(`pullback.compiling.substitution` makes the function meet traced values in their place, so that nothing computed from them is
folded). Numbers, functions and classes are remembered and compared on each call, and a change means recording anew. What
cannot be watched surely (iterators, random generators, files, modules that are not known to be constant) keeps the
function on the tape, with the reason. The list is of what is allowed: anything unknown is an obstacle.
"""

import builtins
import types
from collections.abc import Callable, Sequence
from enum import Enum, EnumMeta
from functools import cached_property, partial
from typing import Any

import numpy as np

from pullback.blocks import Block
from pullback.compiling import code_facts
from pullback.compiling.places import (
    CLASS_LABELS,
    UNASSIGNED,
    Attributes,
    Captured,
    Code,
    Defaults,
    Fixed,
    Item,
    Itself,
    Keys,
    KeywordDefaults,
    Members,
    Named,
    Names,
    Place,
    TypeOfArray,
)
from pullback.compiling.substitution import (
    ArrayPart,
    BlockPart,
    BoundMethodPart,
    CellPart,
    ContainerPart,
    Contents,
    FixedPart,
    FunctionPart,
    InstancePart,
    Part,
    PartialPart,
    Substitution,
    WrappedPart,
)
from pullback.core.primitive import Primitive
from pullback.custom import CustomPrimitive
from pullback.ir.types import ArrayType, type_of
from pullback.rule import StatefulRule

#: Arrays that a method or a class reads are compared with a copy on each call, up to this size.
LARGEST_COMPARED_BYTES = 16 * 1024

_FIXED = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), np.generic, np.dtype, Enum, range, slice)
_CONSTANT_PACKAGES = frozenset(
    {
        "pullback",
        "numpy",
        "scipy",
        "math",
        "cmath",
        "operator",
        "functools",
        "itertools",
        "typing",
        "collections",
        "dataclasses",
        "abc",
        "numbers",
    }
)
_DESCRIPTORS = (types.FunctionType, staticmethod, classmethod, property, cached_property, type)


class Surroundings:
    """What a function meets, whether everything is as it was, and the arrays among it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.obstacle: str | None = None
        self.catches_errors = False
        self._arrays: list[Place] = []
        self._types: list[ArrayType] = []
        self.array_names: list[str] = []
        self._remembered: list[tuple[Place, Any]] = []
        self._walked: dict[tuple[int, bool], Part] = {}
        self._first_seen: dict[int, tuple[Place, Any]] = {}
        self._against_arrays: list[str] = []
        self._found: dict[Any, Part] = {}
        self._classes: set[type] = set()
        self._root = self._look_at("the function", Fixed(function), comparing=False)
        if self._arrays and self.obstacle is None:
            self.obstacle = next(iter(self._against_arrays), None)

    @property
    def array_types(self) -> Sequence[ArrayType]:
        """Types of the arrays that are hidden inputs, in order; other types mean recording anew."""
        return self._types

    @property
    def arrays(self) -> Sequence[Place]:
        """Where they are."""
        return self._arrays

    @property
    def watched(self) -> Sequence[Place]:
        """Where everything else is that has to be what it was."""
        return [place for place, _ in self._remembered]

    @property
    def compares_contents(self) -> bool:
        """Whether arrays are compared element by element."""
        return any(isinstance(value, _Contents) for _, value in self._remembered)

    def read(self) -> list[Any]:
        """The arrays as they are now."""
        return [getter() for getter in self._arrays]

    def unchanged(self) -> bool:
        """Whether everything but the contents of the arrays is still what it was."""
        for getter, value in self._remembered:
            now = getter()
            if now is not value and not _is_same(now, value):
                return False
        return True

    def substituted(self, arrays: Sequence[Any]) -> tuple[Callable[..., Any], Substitution]:
        """The function with these in place of the arrays around it."""
        substitution = Substitution(arrays)
        if not arrays:
            return self._root.original, substitution
        return self._root.rebuilt(substitution), substitution

    def contents(self) -> Contents:
        """What the things around the function hold now."""
        return Contents(self._walked.values())

    # --- walking ----------------------------------------------------------------------------------------------------
    def _watch(self, getter: Place, value: Any) -> None:
        if not (isinstance(getter, Fixed) and getter.value is value):
            self._remembered.append((getter, value))

    def _refuse(self, obstacle: str) -> None:
        if self.obstacle is None:
            self.obstacle = obstacle

    def _look_at(self, name: str, getter: Place, place: Any = None, *, comparing: bool) -> Part:
        """Watch what a getter gives, and everything it leads to.

        A variable that several functions read has a `place`, so that it is one hidden input and not several. `comparing`:
        what is found belongs to a class, which is not made again, so its arrays are compared instead.
        """
        if place is None:
            return self._look(name, getter, comparing=comparing)
        known = self._found.get((place, comparing))
        if known is None:
            known = self._found[place, comparing] = self._look(name, getter, comparing=comparing)
        return known

    def _look(self, name: str, getter: Place, *, comparing: bool) -> Part:
        value = getter()
        if type(value) is np.ndarray:
            return self._look_at_array(name, getter, value, comparing=comparing)
        if isinstance(value, np.ndarray):
            self._refuse(f"{name} is a {type(value).__name__}, not a plain array; pass it as an argument")
            return FixedPart(value)
        if type(value) in (tuple, list, dict) or hasattr(type(value), "_make"):
            return self._look_into_container(name, getter, value, comparing=comparing)
        self._watch(getter, value)
        if _is_constant(value):
            self._refuse_unrepeatable(name, value)
            return FixedPart(value)
        if isinstance(value, Block):
            array = self._look_at(f"{name}.array", lambda: value.array, comparing=comparing)
            return FixedPart(value) if isinstance(array, FixedPart) else BlockPart(value, array)
        known = self._walked.get((id(value), comparing))
        return known if known is not None else self._look_inside(name, value, comparing=comparing)

    def _look_at_array(self, name: str, getter: Place, value: Any, *, comparing: bool) -> Part:
        if value.dtype.kind not in "biufc" or not value.dtype.isnative:
            self._refuse(f"{name} is an array of dtype {value.dtype}, which plans do not take")
        if not comparing:
            self._arrays.append(getter)
            self.array_names.append(name)
            self._types.append(type_of(value))
            self._watch(TypeOfArray(getter), type_of(value))
            # Not the array itself: it may be replaced, and is not for us to keep.
            return ArrayPart(None, len(self._arrays) - 1)
        if value.nbytes > LARGEST_COMPARED_BYTES:
            self._refuse(f"{name} is an array of a class, too large to be compared on each call; make it an attribute")
        else:
            self._watch(getter, _Contents(value))
        return FixedPart(value)

    def _refuse_unrepeatable(self, name: str, value: Any) -> None:
        if isinstance(value, types.ModuleType) and value.__name__.startswith("numpy.random"):
            self._refuse("the function draws random numbers, which differ on each call; pass them as an argument")
        if getattr(value, "__name__", None) in code_facts.READING_FILES and callable(value):
            self._refuse(f"{name} reads a file, which may change between calls; pass what it holds")

    def _look_inside(self, name: str, value: Any, *, comparing: bool) -> Part:
        key = (id(value), comparing)
        if isinstance(value, types.FunctionType):
            part = self._walked[key] = FunctionPart(value)
            self._look_into_function(value, part, comparing=comparing)
            return part
        if isinstance(value, type | CustomPrimitive | StatefulRule):
            self._walked[key] = FixedPart(value)
            self._look_into_definition(name, value)
            return self._walked[key]
        if isinstance(value, partial):
            looked = [self._look_at(name, Fixed(part), comparing=comparing) for part in (value.func, *value.args)]
            keywords = {
                keyword: self._look_at(name, Fixed(part), comparing=comparing)
                for keyword, part in value.keywords.items()
            }
            self._walked[key] = PartialPart(value, looked, keywords)
            return self._walked[key]
        if isinstance(value, types.MethodType):
            self._look_at(name, Fixed(value.__func__), comparing=True)
            owner = self._look_at(f"what {name} is a method of", Fixed(value.__self__), comparing=comparing)
            return BoundMethodPart(value, owner)
        if type(value).__module__.startswith("pullback.") and callable(getattr(value, "function", None)):
            wrapped = self._walked[key] = WrappedPart(value)
            wrapped.function = self._look_at(name, Fixed(value.function), comparing=comparing)
            return wrapped
        return self._look_into_instance(name, value, comparing=comparing)

    def _look_into_definition(self, name: str, value: Any) -> None:
        """A class, or a rule of the user's: neither is made again, so what its functions read is compared."""
        if isinstance(value, type):
            self._look_into_class(name, value)
            return
        self._watch(lambda: value.user_functions, value.user_functions)
        for function in value.user_functions:
            self._look_at(name, Fixed(function), comparing=True)

    def _look_into_function(self, function: types.FunctionType, part: FunctionPart, *, comparing: bool) -> None:
        for attribute in function.__dict__.keys() - {"__wrapped__"}:
            self._refuse(f"{function.__name__} has an attribute {attribute}, which may change; pass it as an argument")
        code = function.__code__
        self._watch(Code(function), code)
        assigned = code_facts.captured_names_assigned(code)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            contents = self._look_at(name, Captured(cell), ("cell", id(cell)), comparing=comparing)
            if name in assigned and not isinstance(contents, FixedPart):
                self._against_arrays.append(
                    f"{function.__name__} assigns {name}, which it captures; pass and return it"
                )
            part.cells[name] = CellPart(cell, contents, shared=name in assigned)
        part.defaults = self._look_at("a default", Defaults(function), comparing=comparing)
        part.keyword_defaults = self._look_at("a default", KeywordDefaults(function), comparing=comparing)
        if _of_constant_package(function):
            return
        namespace = function.__globals__
        for name in code_facts.globals_read(code):
            getter = Named(namespace, name)
            place = ("global", id(namespace), name)
            part.globals_[name] = self._look_at(name, getter, place, comparing=comparing)
            if (
                name in code_facts.LOOKING_AROUND
                and getattr(builtins, name, None) is not None
                and name not in namespace
            ):
                self._refuse(f"the function calls {name}, so what it reads cannot be known")
        self._refuse_by_code(function)

    def _refuse_by_code(self, function: types.FunctionType) -> None:
        """Refuse what the code itself tells: it draws, reads, assigns or asks for what a plan cannot follow."""
        code, name = function.__code__, function.__name__
        for module in code_facts.modules_imported(code):
            if module.partition(".")[0] not in _CONSTANT_PACKAGES:
                self._refuse(f"the function imports {module}, which may change between calls; pass what it needs")
        if code_facts.draws_random_numbers(code):
            self._refuse("the function draws random numbers, which differ on each call; pass them as an argument")
        if code_facts.reads_files(code):
            self._refuse("the function reads a file, which may change between calls; pass what it holds")
        self.catches_errors |= code_facts.catches_errors(code)
        if code_facts.globals_assigned(code):
            self._against_arrays.append(f"{name} assigns a global; return the value instead")
        if code_facts.asks_for_ndarray(code):
            self._refuse(f"{name} asks whether a value is an ndarray, which a traced value is not; ask for its shape")

    def _look_into_container(self, name: str, getter: Place, value: Any, *, comparing: bool) -> Part:
        self._watch(Keys(getter), Keys(Fixed(value))())
        first, _ = self._first_seen.setdefault(id(value), (getter, value))
        if first is not getter:
            # Reached by two names, it is watched by its identity under both: either may be given another one.
            for name_of_it in (first, getter):
                self._watch(Itself(name_of_it), _Identity(value))
        known = self._walked.get((id(value), comparing))
        if known is not None:
            return known
        part = ContainerPart(value, name)
        self._walked[id(value), comparing] = part
        for key in value if isinstance(value, dict) else range(len(value)):
            part.parts[key] = self._look_at(f"{name}[{key!r}]", Item(getter, key), comparing=comparing)
        return part

    def _look_into_instance(self, name: str, value: Any, *, comparing: bool) -> Part:
        """A plain object: its attributes are in its __dict__, and its class does nothing when they are read."""
        if any(base.__module__.startswith("numpy.random") for base in type(value).__mro__):
            self._refuse("the function draws random numbers, which differ on each call; pass them as an argument")
            return FixedPart(value)
        if not _is_plain_class(type(value)) or type(getattr(value, "__dict__", None)) is not dict:
            self._refuse(
                f"{name} is a {type(value).__name__}, whose attributes may change between calls unseen; "
                "pass what is needed of it as an argument"
            )
            return FixedPart(value)
        part = InstancePart(value, name)
        self._walked[id(value), comparing] = part
        self._look_into_class(type(value).__name__, type(value))
        attributes = value.__dict__
        self._watch(Attributes(value), _Identity(type(value), attributes))
        self._watch(Names(attributes), tuple(attributes))
        for attribute in attributes:
            part.parts[attribute] = self._look_at(
                f"{name}.{attribute}", Named(attributes, attribute), comparing=comparing
            )
        return part

    def _look_into_class(self, name: str, class_: type) -> None:
        if class_ in self._classes:
            return
        self._classes.add(class_)
        if not _is_plain_class(class_):
            self._refuse(f"{name} is a {type(class_).__name__}, whose attributes may change between calls unseen")
            return
        for base in class_.__mro__:
            if _package(base) in _CONSTANT_PACKAGES | {"builtins"}:
                continue
            members = Members(base)
            self._watch(members, _Identity(*members()))
            for key, member in vars(base).items():
                if key in CLASS_LABELS:
                    continue
                for part in _functions_of(member):
                    self._look_at(f"{name}.{key}", Fixed(part), comparing=True)
                if not isinstance(member, _DESCRIPTORS) and hasattr(type(member), "__get__"):
                    self._refuse(
                        f"{name}.{key} is a {type(member).__name__}, which may give another value on each call"
                    )


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


class _Identity:
    """Which objects there were."""

    __slots__ = ("_objects",)

    def __init__(self, *objects: Any) -> None:
        self._objects = objects

    def matches(self, value: Any) -> bool:
        """Whether these, in a tuple, are the same objects."""
        return len(value) == len(self._objects) and all(a is b for a, b in zip(value, self._objects, strict=True))


def _is_constant(value: Any) -> bool:
    """Whether a value, as long as it is the same object, always does the same."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _CONSTANT_PACKAGES
    if isinstance(value, EnumMeta):
        return True
    if isinstance(value, type):
        return value.__module__.partition(".")[0] in _CONSTANT_PACKAGES | {"builtins"}
    if isinstance(value, types.FunctionType):
        return _of_constant_package(value) and not value.__closure__ and not value.__dict__.keys() - {"__wrapped__"}
    if isinstance(value, types.BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, types.ModuleType)
    # NumPy's functions with dispatch are objects of a type of NumPy's own.
    is_numpy_function = type(value).__name__ == "_ArrayFunctionDispatcher"
    return isinstance(value, (*_FIXED, np.ufunc, Primitive)) or is_numpy_function or value is UNASSIGNED


def _of_constant_package(function: types.FunctionType) -> bool:
    # By its globals: __module__ can be copied from elsewhere (functools.wraps).
    return str(function.__globals__.get("__name__")).partition(".")[0] in _CONSTANT_PACKAGES


def _is_plain_class(class_: type) -> bool:
    """Whether reading an attribute of an instance is reading its __dict__ or its class's, and nothing else."""
    hooks = ("__getattr__", "__getattribute__", "__setattr__", "__slots__")
    plain_meta = type(class_) is type or type(class_).__module__ == "abc"
    return plain_meta and not any(
        hook in vars(base) and not _is_frozen_dataclass(base, hook)
        for base in class_.__mro__
        if base is not object and _package(base) not in _CONSTANT_PACKAGES - {"pullback", "numpy", "scipy"}
        for hook in hooks
    )


def _is_frozen_dataclass(class_: type, hook: str) -> bool:
    parameters = vars(class_).get("__dataclass_params__")
    return hook == "__setattr__" and getattr(parameters, "frozen", False)


def _package(class_: type) -> str:
    return class_.__module__.partition(".")[0]


def _functions_of(member: Any) -> tuple[Any, ...]:
    """What a member of a class runs or holds."""
    if isinstance(member, staticmethod | classmethod):
        return (member.__func__,)
    if isinstance(member, property):
        return (member.fget, member.fset, member.fdel)
    return (member.func,) if isinstance(member, cached_property) else (member,)


def _is_same(now: Any, then: Any) -> bool:
    if isinstance(then, _Contents | _Identity):
        return then.matches(now)
    if type(now) is not type(then) or not isinstance(now, (*_FIXED, ArrayType, tuple)):
        return False
    # repr tells -0.0 from 0.0, == does not.
    return bool(now == then) and (not isinstance(now, float | complex) or repr(now) == repr(then))
