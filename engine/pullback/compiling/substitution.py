"""A function made again with other values in place of the arrays around it.

Recording must see what a function computes from arrays in its closure, its globals or the attributes of its objects, or
the plan would go on with what was computed on the first day. So the function that is recorded is a copy: the same code,
with traced values where the arrays were. Whatever leads to an array (functions, containers, objects) is copied on the way;
everything else is shared. What the function does to the copies would be lost, so a change to one is found out afterwards.
"""

import copy
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from pullback.blocks import Block
from pullback.core.primitive import Traced


class Substitution:
    """One making of the copies: what stands in place of the arrays, and what has been copied already."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays = arrays
        self.copies: dict[int, Any] = {}
        self._namespaces: dict[int, dict[str, Any]] = {}
        self._contents: list[tuple[str, Any, list[Any]]] = []

    def namespace(self, original: dict[str, Any]) -> dict[str, Any]:
        """The copy of a module's globals."""
        return self._namespaces.setdefault(id(original), dict(original))

    def note(self, name: str, container: Any) -> None:
        """Remember what a copied container holds."""
        self._contents.append((name, container, _held(container)))

    def changed(self) -> str | None:
        """The name of a copied container that the function changed, if it changed one."""
        for name, container, before in self._contents:
            now = _held(container)
            if len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True)):
                return name
        return None


class Part:
    """A thing around a function, and how to make it again."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def rebuilt(self, substitution: Substitution) -> Any:
        """The copy; the same one however often it is asked for."""
        known = substitution.copies.get(id(self))
        return known if known is not None else self.build(substitution)

    def build(self, substitution: Substitution) -> Any:
        """Make the copy."""
        raise NotImplementedError  # every kind of place says how


class FixedPart(Part):
    """Leads to no array: shared."""

    def rebuilt(self, substitution: Substitution) -> Any:
        """The thing itself."""
        del substitution
        return self.original


class ArrayPart(Part):
    """An array, by its number among the hidden inputs."""

    def __init__(self, original: Any, number: int) -> None:
        super().__init__(original)
        self.number = number

    def rebuilt(self, substitution: Substitution) -> Any:
        """What stands in its place."""
        return substitution.arrays[self.number]


class ContainerPart(Part):
    """A tuple, a list or a dict."""

    def __init__(self, original: Any, name: str) -> None:
        super().__init__(original)
        self.name = name
        self.parts: dict[Any, Part] = {}

    def build(self, substitution: Substitution) -> Any:
        """A container of the same type; one that may hold itself is there before it is filled."""
        kind = type(self.original)
        if isinstance(self.original, tuple):
            parts = [part.rebuilt(substitution) for part in self.parts.values()]
            made: Any = getattr(kind, "_make", kind)(parts)
            substitution.copies[id(self)] = made
            return made
        made = substitution.copies[id(self)] = kind()
        if isinstance(made, dict):
            made.update((key, part.rebuilt(substitution)) for key, part in self.parts.items())
        else:
            made.extend(part.rebuilt(substitution) for part in self.parts.values())
        substitution.note(self.name, made)
        return made


class InstancePart(Part):
    """A plain object."""

    def __init__(self, original: Any, name: str) -> None:
        super().__init__(original)
        self.name = name
        self.parts: dict[str, Part] = {}

    def build(self, substitution: Substitution) -> Any:
        """An object of the same class with other attributes."""
        made = substitution.copies[id(self)] = object.__new__(type(self.original))
        made.__dict__.update((name, part.rebuilt(substitution)) for name, part in self.parts.items())
        substitution.note(self.name, made)
        return made


class BlockPart(Part):
    """A block of parameters; it has the same array and layout as long as it lives."""

    def __init__(self, original: Block, array: Part) -> None:
        super().__init__(original)
        self.array = array

    def build(self, substitution: Substitution) -> Any:
        """A block of the same layout; what is written to it is refused, since its array is traced."""
        made = substitution.copies[id(self)] = self.original.map(lambda _: self.array.rebuilt(substitution))
        return made


class CellPart(Part):
    """A variable of a closure. One that the function assigns to, and that leads to no array, is shared."""

    def __init__(self, original: types.CellType, contents: Part, *, shared: bool) -> None:
        super().__init__(original)
        self.contents = contents
        self.shared = shared

    def rebuilt(self, substitution: Substitution) -> Any:
        """The copied variable, by the original one, which several functions may share; `fill` gives it its contents."""
        if self.shared:
            return self.original
        return substitution.copies.setdefault(id(self.original), types.CellType())

    def fill(self, substitution: Substitution) -> None:
        """Let the copied variable hold the copied contents."""
        cell = self.rebuilt(substitution)
        if not self.shared and not _is_assigned(cell) and _is_assigned(self.original):
            cell.cell_contents = self.contents.rebuilt(substitution)


class FunctionPart(Part):
    """A function written in Python."""

    def __init__(self, original: types.FunctionType) -> None:
        super().__init__(original)
        self.cells: dict[str, CellPart] = {}
        self.globals_: dict[str, Part] = {}
        self.defaults: Part = FixedPart(())
        self.keyword_defaults: Part = FixedPart({})

    def build(self, substitution: Substitution) -> Any:
        """The same code in other surroundings. It is there before they are: it may be among them."""
        function: types.FunctionType = self.original
        namespace = substitution.namespace(function.__globals__) if self.globals_ else function.__globals__
        cells = tuple(cell.rebuilt(substitution) for cell in self.cells.values())
        made = types.FunctionType(function.__code__, namespace, function.__name__, None, cells or None)
        substitution.copies[id(self)] = made
        made.__qualname__ = function.__qualname__
        made.__module__ = function.__module__
        for cell in self.cells.values():
            cell.fill(substitution)
        for name, part in self.globals_.items():
            if name in function.__globals__:
                namespace[name] = part.rebuilt(substitution)
        made.__defaults__ = self.defaults.rebuilt(substitution) or None
        made.__kwdefaults__ = self.keyword_defaults.rebuilt(substitution) or None
        return made


class PartialPart(Part):
    """A functools.partial."""

    def __init__(self, original: Any, parts: Sequence[Part], keywords: dict[str, Part]) -> None:
        super().__init__(original)
        self.parts = parts
        self.keywords = keywords

    def build(self, substitution: Substitution) -> Any:
        """The same arguments held, arrays exchanged."""
        function, *arguments = [part.rebuilt(substitution) for part in self.parts]
        keywords = {name: part.rebuilt(substitution) for name, part in self.keywords.items()}
        made = substitution.copies[id(self)] = partial(function, *arguments, **keywords)
        return made


class BoundMethodPart(Part):
    """A method together with its object."""

    def __init__(self, original: Any, owner: Part) -> None:
        super().__init__(original)
        self.owner = owner

    def build(self, substitution: Substitution) -> Any:
        """The method of the copied object."""
        return types.MethodType(self.original.__func__, self.owner.rebuilt(substitution))


class WrappedPart(Part):
    """A transformation of the engine's that wraps a function: a gradient, a plan."""

    def __init__(self, original: Any) -> None:
        super().__init__(original)
        self.function: Part = FixedPart(original.function)

    def build(self, substitution: Substitution) -> Any:
        """The same transformation of the copied function."""
        made = copy.copy(self.original)
        substitution.copies[id(self)] = made
        function: Callable[..., Any] = self.function.rebuilt(substitution)
        object.__setattr__(made, "function", function)
        return made


class Contents:
    """What is held around a function before it is recorded.

    What leads to no array is not copied, and the function may store into it: a traced value there would be met by others.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self._before = [(place, dict(place) if isinstance(place, dict) else list(place)) for place in _places(parts)]
        self._cells = [
            (cell, cell.cell_contents)
            for part in parts
            if isinstance(part, FunctionPart)
            for cell in (one.original for one in part.cells.values() if one.shared)
            if _is_assigned(cell)
        ]

    def put_back(self) -> bool:
        """If a traced value is among it now, make everything as it was; whether there was one."""
        held = [value for place, _ in self._before for value in _held(place)]
        if not any(isinstance(value, Traced) for value in [*held, *(cell.cell_contents for cell, _ in self._cells)]):
            return False
        for place, before in self._before:
            if isinstance(place, dict):
                place.clear()
                place.update(before)
            else:
                place[:] = before
        for cell, value in self._cells:
            cell.cell_contents = value
        return True


def _places(parts: Iterable[Part]) -> Iterator[Any]:
    """The lists and dicts in which a function may store."""
    for part in parts:
        if isinstance(part, ContainerPart) and type(part.original) in (list, dict):
            yield part.original
        elif isinstance(part, InstancePart):
            yield part.original.__dict__


def _held(container: Any) -> list[Any]:
    if isinstance(container, dict):
        return [*container, *container.values()]
    return list(container) if isinstance(container, list) else [*container.__dict__, *container.__dict__.values()]


def _is_assigned(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 (reading it is the test)
    except ValueError:
        return False
    return True
