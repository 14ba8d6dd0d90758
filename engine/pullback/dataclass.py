"""Dataclasses that are made in a fifth of the time.

`dataclasses.dataclass` makes six functions out of text for each frozen class, 0.5 ms on Python 3.11: a fifth of the first plan of
a process went into it. Here only `__init__` is made so, the others are closures over the names of the fields. The results are
dataclasses to `fields`, `replace`, `match`, copies and type checkers. Not offered: `order`, `unsafe_hash`, `kw_only`, `InitVar`.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 (for those that import it from here)
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a dataclass, as `dataclasses.dataclass` does with `repr`, `eq`, `frozen`, `slots` and `weakref_slot`."""
        return (lambda written: _made(written, **options)) if cls is None else _made(cls, **options)


def _made(written: type, *, repr: bool = True, eq: bool = True, frozen: bool = False, **slots: bool) -> type:  # noqa: A002
    own = dict(vars(written))  # its own methods are kept
    inherits = any(
        map(dataclasses.is_dataclass, written.__mro__[1:])
    )  # from frozen ones only frozen ones may, and back
    cls: Any = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=frozen and inherits, **slots)(written)
    params = cls.__dataclass_params__
    params.init, params.repr, params.eq, params.frozen = True, repr, eq, frozen
    found = fields(cls)
    methods: dict[str, Any] = {"__init__": _init(cls, found, frozen=frozen)}
    if repr:
        methods["__repr__"] = _repr
    if eq:
        methods["__eq__"] = _eq([field.name for field in found if field.compare])
        hashed = [field.name for field in found if (field.compare if field.hash is None else field.hash)]
        methods["__hash__"] = _hash(hashed) if frozen else None
    if frozen:
        methods["__setattr__"], methods["__delattr__"] = _refusing(cls, frozenset(field.name for field in found))
    if frozen and slots:
        methods |= {"__getstate__": _getstate, "__setstate__": _setstate}
    for name, method in methods.items():
        if own.get(name) is None:  # `__hash__` is None, by Python itself, in a class that has an `__eq__`
            setattr(cls, name, method)
    return cls  # type: ignore[no-any-return]  # a type


class _Factory:
    """The default of a parameter whose field is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _init(cls: type, found: tuple[Field[Any], ...], *, frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"__name__": cls.__module__, "set_": object.__setattr__, "FACTORY": _FACTORY}
    parameters, body = [], []
    for field in found:
        name = value = parameter = field.name
        if field.default is not MISSING:
            known[f"default_{name}"] = field.default
            parameter = f"{name}=default_{name}"
            default = f"default_{name}"
        elif field.default_factory is not MISSING:
            known[f"make_{name}"] = field.default_factory
            parameter = f"{name}=FACTORY"
            default = f"make_{name}()"
            value = f"{default} if {name} is FACTORY else {name}"
        elif not field.init:
            continue  # `__post_init__` gives it a value
        if field.init:
            parameters.append(parameter)
        else:
            value = default
        body.append(f" set_(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(['self', *parameters])}):\n" + ("\n".join(body) or " pass"), known)  # noqa: S102 (of names)
    init: Any = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in found if field.init} | {"return": None}
    return init  # type: ignore[no-any-return]  # a function


def _key(names: list[str]) -> Callable[[Any], Any]:
    """A function from an object to the tuple of these fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _eq(names: list[str]) -> Callable[[Any, object], bool]:
    key = _key(names)

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807 (it becomes the method)
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(names: list[str]) -> Callable[[Any], int]:
    key = _key(names)

    def __hash__(self: Any) -> int:  # noqa: N807 (as above)
        return hash(key(self))

    return __hash__


def _refusing(cls: Any, names: frozenset[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807 (as above)
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807 (as above)
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
