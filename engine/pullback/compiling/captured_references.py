"""Places of the objects that a function captures: calling a place gives the object that is there now.

A place says what it is, so that the native entry can look there without running Python.
"""

import gc
import threading
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pullback.core.types import ArrayType, type_of
from pullback.dataclass import dataclass

Place: TypeAlias = Callable[[], Any]

#: The value of a place that is empty.
UNASSIGNED = object()

#: Attributes that a class has for its own use, which may change without a change in what its instances do.
CLASS_LABELS = frozenset(
    {
        "__module__",
        "__qualname__",
        "__doc__",
        "__dict__",
        "__weakref__",
        "__slotnames__",  # kept there by copyreg when an object is copied
        "__annotations__",
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
        "__firstlineno__",
        "__static_attributes__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__match_args__",
        "__hash__",
        "__repr__",
        "__abstractmethods__",
        "_abc_impl",
        "__parameters__",
        "__orig_bases__",
        "__slots__",
        "_member_map_",
        "_member_names_",
        "_value2member_map_",
        "_unhashable_values_",
        "_unhashable_values_map_",
        "_hashable_values_",
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class FixedReference:
    """An object without a place: it was reached in another way, and is watched there."""

    value: Any

    def __call__(self) -> Any:
        """The current value."""
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class NamespaceEntry:
    """A name in a dict that stays the same: a global, an attribute."""

    namespace: dict[str, Any]
    name: str

    def __call__(self) -> Any:
        """The current value."""
        return self.namespace.get(self.name, UNASSIGNED)


class StandIn:
    """A descriptor in place of a number in a class while a function is recorded: it gives the thread that records a traced one."""

    def __init__(self, traced: Any, number: Any) -> None:
        self._traced = traced
        self.number = number
        self._thread = threading.get_ident()

    def shown(self) -> Any:
        """The traced one, or what is there for other threads."""
        return self._traced if threading.get_ident() == self._thread else shown(self.number)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.shown()


class StandInMethod(StandIn):
    """The same for a method, which is bound as usual."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.shown().__get__(instance, owner)


def shown(member: Any) -> Any:
    """A member of a class, or what stands in its place for this thread."""
    return member.shown() if isinstance(member, StandIn) else member


@dataclass(frozen=True, slots=True, eq=False)
class Member(NamespaceEntry):
    """A number in the dict of a class."""

    def __call__(self) -> Any:
        """The current value."""
        return shown(self.namespace.get(self.name, UNASSIGNED))


@dataclass(frozen=True, slots=True, eq=False)
class ClosureVariable:
    """A variable of a closure; a function that refers to itself may not be assigned yet."""

    cell: types.CellType

    def __call__(self) -> Any:
        """The current value."""
        try:
            return self.cell.cell_contents
        except ValueError:
            return UNASSIGNED


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """The code of a function."""

    function: types.FunctionType

    def __call__(self) -> types.CodeType:
        """The current value."""
        return self.function.__code__


@dataclass(frozen=True, slots=True, eq=False)
class Defaults:
    """The default of an argument by position."""

    function: types.FunctionType

    def __call__(self) -> tuple[Any, ...]:
        """The current value."""
        return self.function.__defaults__ or ()


@dataclass(frozen=True, slots=True, eq=False)
class KeywordDefaults:
    """The default of an argument by keyword."""

    function: types.FunctionType

    def __call__(self) -> dict[str, Any]:
        """The current value."""
        return self.function.__kwdefaults__ or {}


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A part of the container in another place."""

    container: Place
    key: Any

    def __call__(self) -> Any:
        """The current value."""
        try:
            return self.container()[self.key]
        except (LookupError, TypeError):
            return UNASSIGNED


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The keys of the dict in another place in their order, or the length of the tuple or list."""

    container: Place

    def __call__(self) -> tuple[Any, ...] | None:
        """The current value."""
        container = self.container()
        if isinstance(container, dict):
            return (type(container), *container)
        return (type(container), len(container)) if isinstance(container, tuple | list) else None


@dataclass(frozen=True, slots=True, eq=False)
class ObjectIdentity:
    """The object in another place, to be the same one."""

    place: Place

    def __call__(self) -> tuple[Any]:
        """The current value."""
        return (self.place(),)


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """The class of an object and the dict of its attributes, to be the same ones."""

    instance: Any

    def __call__(self) -> tuple[Any, ...]:
        """The current value."""
        return type(self.instance), self.instance.__dict__


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A slot of an object."""

    instance: Any
    name: str

    def __call__(self) -> Any:
        """The current value."""
        try:
            return object.__getattribute__(self.instance, self.name)
        except AttributeError:
            return UNASSIGNED


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """The class of an object, to be the same one."""

    instance: Any

    def __call__(self) -> tuple[type]:
        """The current value."""
        return (type(self.instance),)


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The names in a dict that stays the same."""

    namespace: Mapping[str, Any]

    def __call__(self) -> tuple[str, ...]:
        """The current value."""
        return tuple(self.namespace)


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The attributes of a class itself, but for those that are inputs."""

    class_: type
    inputs: frozenset[str] = frozenset()

    def __call__(self) -> tuple[Any, ...]:
        """The current value."""
        return tuple(
            shown(member)
            for key, member in vars(self.class_).items()
            if key not in CLASS_LABELS and key not in self.inputs
        )

    def names(self) -> list[str]:
        """The names of these attributes."""
        return [key for key in vars(self.class_) if key not in CLASS_LABELS and key not in self.inputs]

    def member(self, name: str) -> Member:
        """The place of one of the attributes."""
        (namespace,) = gc.get_referents(vars(self.class_))  # the dict itself, of which vars gives a view
        return Member(namespace, name)


@dataclass(frozen=True, slots=True, eq=False)
class TypeOfInput:
    """The type of the array, or of the number of some type, in another place."""

    place: Place
    type: type

    def __call__(self) -> ArrayType | None:
        """The current value."""
        value = self.place()
        return type_of(value) if type(value) is self.type else None


PlaceKey: TypeAlias = tuple[Any, ...]


def key_of(place: Place) -> PlaceKey:
    """The key of a place, which is equal for the same place."""
    match place:
        case NamespaceEntry(namespace, name):
            return ("named", id(namespace), name)
        case ClosureVariable(cell):
            return ("cell", id(cell))
        case Slot(instance, name):
            return ("slot", id(instance), name)
        case Item(container, key):
            return ("item", key, *key_of(container))
        case Defaults(function) | KeywordDefaults(function):
            return (type(place).__name__, id(function))
    return ("other", id(place))
