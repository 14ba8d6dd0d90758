"""A function rebuilt with other values in place of the arrays it captures.

Recording must see what a function computes from arrays in its closure, its globals or the attributes of its objects,
or the plan would keep using the values of the first call. So the function that is recorded is a copy: the same code,
with traced values where the arrays were. Whatever leads to an array (functions, containers, objects) is copied too;
everything else is shared. What the function does to the copies would be lost, so a change to one is found out afterwards.
"""

import copy
import gc
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import Any

from pullback.blocks import Block
from pullback.compiling.captured_references import StandIn, StandInMethod
from pullback.compiling.code_facts import globals_assigned
from pullback.compiling.constancy import is_same, slots_of
from pullback.core.primitive import TracedValue


class Substitution:
    """One making of the copies: what stands in place of the arrays, and what has been copied already."""

    def __init__(
        self,
        arrays: Sequence[Any],
        in_classes: Sequence[tuple[type, str, int]] = (),
        methods: "Mapping[int, Method] | None" = None,
    ) -> None:
        self.arrays = arrays
        self._in_classes = in_classes
        self._methods = methods or {}
        self.copies: dict[int, Any] = {}
        self._modules: dict[int, types.ModuleType] = {}
        self._contents: list[tuple[str, Any, list[Any]]] = []
        self._assigned: list[str] = []

    def module(self, original: dict[str, Any]) -> types.ModuleType:
        """The copy of the module that has these globals."""
        known = self._modules.get(id(original))
        if known is None:
            known = self._modules[id(original)] = types.ModuleType(str(original.get("__name__")))
            known.__dict__.update(original)
        return known

    def note(self, name: str, container: Any) -> None:
        """Remember what a copied container holds."""
        self._contents.append((name, container, _held(container)))

    def note_modules(self) -> None:
        """Remember what the copied modules hold, now that everything is in them."""
        for module in self._modules.values():
            self.note(module.__name__, module.__dict__)

    @contextmanager
    def in_classes(self) -> Iterator[None]:
        """Let traced values stand in classes, which are not copied."""
        standing = [
            (class_, name, StandIn(self.arrays[number], vars(class_)[name]))
            for class_, name, number in self._in_classes
        ]
        for method in self._methods.values():
            function = self.method(method.function)
            for class_, name in method.places if method.numbers else ():
                member = vars(class_)[name]
                made = function if member is method.function else type(member)(function)
                standing.append((class_, name, StandInMethod(made, member)))
        for class_, name, one in standing:
            type.__setattr__(class_, name, one)
        try:
            yield
        finally:
            for class_, name, one in standing:
                if vars(class_).get(name) is not one:
                    self._assigned.append(f"{class_.__name__}.{name}")
                type.__setattr__(class_, name, one.number)

    def method(self, function: Any) -> Any:
        """A method with other numbers around it, or the method itself."""
        method = self._methods.get(id(function))
        if method is None or not method.numbers:
            return function
        if id(method) not in self.copies:
            self.copies[id(method)] = method.reading(self.arrays)
        return self.copies[id(method)]

    def changed(self) -> str | None:
        """The name of a copied container that the function changed, or of what it assigned in a class."""
        if self._assigned:
            return self._assigned[0]
        for name, container, before in self._contents:
            now = _held(container)
            if len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True)):
                return name
        return None


class Method:
    """A function of classes, which are not made again, with the numbers around it that are inputs."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.places: list[tuple[type, str]] = []
        """The classes it is a member of, and its names there."""
        self.numbers: dict[str, int] = {}
        """Numbers of the inputs by the names under which the function reads them."""
        self.reached = 0
        """The number of ways that lead to it."""
        self.exchanged = 0
        """Those on which another function stands in its place: by a class, or together with an object."""
        self.bound: list[BoundMethodPart] = []

    def reading(self, arrays: Sequence[Any]) -> types.FunctionType:
        """The same function, which reads these instead."""
        function, numbers = self.function, {name: arrays[number] for name, number in self.numbers.items()}
        captured = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        cells = tuple(types.CellType(numbers[name]) if name in numbers else cell for name, cell in captured)
        namespace = {**function.__globals__, **numbers}
        made = types.FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, cells or None)
        made.__kwdefaults__, made.__qualname__, made.__module__ = (
            function.__kwdefaults__,
            function.__qualname__,
            function.__module__,
        )
        made.__dict__.update(function.__dict__)
        return made


class Part:
    """A thing around a function, and how to make it again."""

    def __init__(self, original: Any, obstacle: str | None = None) -> None:
        self.original = original
        self.obstacle = obstacle
        """The reason why a function that reads this cannot be compiled."""
        self.moves = False
        """True if it leads to a hidden input; what does not is shared and not copied."""

    def parts(self) -> Iterable["Part"]:
        """The parts that it leads to."""
        return ()

    def rebuilt(self, substitution: Substitution) -> Any:
        """The copy, which is made once."""
        if not self.moves:
            return self.original
        known = substitution.copies.get(id(self))
        return known if known is not None else self.build(substitution)

    def build(self, substitution: Substitution) -> Any:
        """Make the copy."""
        raise NotImplementedError  # every kind of thing that leads to others says how


class DefinitionPart(Part):
    """A thing that is shared, and what it leads to: a class or a rule with its functions, a value of a class of the user's."""

    def __init__(self, original: Any, members: Iterable[Part] = ()) -> None:
        super().__init__(original)
        self.members = list(members)

    def parts(self) -> Iterable[Part]:
        """The functions and values of the class."""
        return self.members

    def build(self, substitution: Substitution) -> Any:
        """The thing itself."""
        del substitution
        return self.original


class InputPart(Part):
    """An array or a number that is a hidden input, by its number among them."""

    def __init__(self, number: int) -> None:
        super().__init__(None)  # not the array itself: it may be replaced, and is not for us to keep
        self.number = number
        self.moves = True

    def rebuilt(self, substitution: Substitution) -> Any:
        """The value that replaces it."""
        return substitution.arrays[self.number]


class ContainerPart(Part):
    """A tuple, a list or a dict."""

    def __init__(self, original: Any, name: str) -> None:
        super().__init__(original)
        self.name = name
        self.items: dict[Any, Part] = {}
        self.beside: list[Part] = []
        """The class of a named tuple, the keys of a dict."""

    def parts(self) -> Iterable[Part]:
        """The items, and what is shared."""
        return [*self.items.values(), *self.beside]

    def build(self, substitution: Substitution) -> Any:
        """A container of the same type; one that may hold itself is there before it is filled."""
        kind = type(self.original)
        if isinstance(self.original, tuple):
            parts = [part.rebuilt(substitution) for part in self.items.values()]
            made: Any = getattr(kind, "_make", kind)(parts)
            substitution.copies[id(self)] = made
            return made
        made = substitution.copies[id(self)] = kind()
        if isinstance(made, dict):
            made.update((key, part.rebuilt(substitution)) for key, part in self.items.items())
        else:
            made.extend(part.rebuilt(substitution) for part in self.items.values())
        substitution.note(self.name, made)
        return made


class InstancePart(Part):
    """A plain object."""

    def __init__(self, original: Any, name: str, definition: Part) -> None:
        super().__init__(original)
        self.name = name
        self.definition = definition
        self.attributes: dict[str, Part] = {}

    def parts(self) -> Iterable[Part]:
        """The attributes and the class."""
        return [self.definition, *self.attributes.values()]

    def build(self, substitution: Substitution) -> Any:
        """An object of the same class with other attributes."""
        kind = type(self.original)
        made = substitution.copies[id(self)] = kind() if kind is types.SimpleNamespace else object.__new__(kind)
        for name, part in self.attributes.items():
            object.__setattr__(made, name, part.rebuilt(substitution))
        substitution.note(self.name, made)
        return made


class ModulePart(Part):
    """A module, by what is read of it."""

    def __init__(self, original: types.ModuleType) -> None:
        super().__init__(original)
        self.attributes: dict[str, Part] = {}

    def parts(self) -> Iterable[Part]:
        """The attributes that are read of the module."""
        return self.attributes.values()

    def build(self, substitution: Substitution) -> Any:
        """A module with other things in it; the globals of its functions are in the same dict."""
        made = substitution.copies[id(self)] = substitution.module(self.original.__dict__)
        for name, part in self.attributes.items():
            made.__dict__[name] = part.rebuilt(substitution)
        return made


class BlockPart(Part):
    """A block of parameters; it has the same array and layout as long as it lives."""

    def __init__(self, original: Block, array: Part) -> None:
        super().__init__(original)
        self.array = array

    def parts(self) -> Iterable[Part]:
        """The array."""
        return (self.array,)

    def build(self, substitution: Substitution) -> Any:
        """A block of the same layout; what is written to it is refused, since its array is traced."""
        made = substitution.copies[id(self)] = self.original.map(lambda _: self.array.rebuilt(substitution))
        return made


class CellPart(Part):
    """A variable of a closure. One that leads to no hidden input is shared, and the function may assign to it."""

    def __init__(self, original: types.CellType, contents: Part) -> None:
        super().__init__(original)
        self.contents = contents

    def parts(self) -> Iterable[Part]:
        """The contents of the cell."""
        return (self.contents,)

    def build(self, substitution: Substitution) -> Any:
        """The copied variable, by the original one, which several functions may share; `fill` gives it its contents."""
        return substitution.copies.setdefault(id(self.original), types.CellType())

    def fill(self, substitution: Substitution) -> None:
        """Let the copied variable hold the copied contents."""
        cell = self.rebuilt(substitution)
        if self.moves and not _is_assigned(cell) and _is_assigned(self.original):
            cell.cell_contents = self.contents.rebuilt(substitution)


class FunctionPart(Part):
    """A function written in Python."""

    def __init__(self, original: types.FunctionType) -> None:
        super().__init__(original)
        self.cells: dict[str, CellPart] = {}
        self.globals_: dict[str, Part] = {}
        self.imported: list[Part] = []
        self.defaults: Part = Part(())
        self.keyword_defaults: Part = Part({})
        self.wrapped: Part | None = None
        self.against_inputs: str | None = None
        """The reason why it cannot be compiled where there are hidden inputs."""

    def parts(self) -> Iterable[Part]:
        """The captured variables, globals, imports and defaults of the function."""
        return [
            *self.cells.values(),
            *self.globals_.values(),
            *self.imported,
            self.defaults,
            self.keyword_defaults,
            *([] if self.wrapped is None else [self.wrapped]),
        ]

    def build(self, substitution: Substitution) -> Any:
        """The same code in another environment. It is there before that environment is: it may be part of it."""
        function: types.FunctionType = self.original
        copied = any(part.moves for part in self.globals_.values())
        namespace = substitution.module(function.__globals__).__dict__ if copied else function.__globals__
        cells = tuple(cell.rebuilt(substitution) for cell in self.cells.values())
        made = types.FunctionType(function.__code__, namespace, function.__name__, None, cells or None)
        substitution.copies[id(self)] = made
        made.__qualname__ = function.__qualname__
        made.__module__ = function.__module__
        made.__dict__.update(function.__dict__)
        if self.wrapped is not None:
            made.__dict__["__wrapped__"] = self.wrapped.rebuilt(substitution)
        substitution.note(function.__name__, made.__dict__)
        for cell in self.cells.values():
            cell.fill(substitution)
        for name, part in self.globals_.items() if copied else ():
            if name in function.__globals__:
                namespace[name] = part.rebuilt(substitution)
        made.__defaults__ = self.defaults.rebuilt(substitution) or None
        made.__kwdefaults__ = self.keyword_defaults.rebuilt(substitution) or None
        return made


class RememberingPart(Part):
    """A function with functools.lru_cache, by what it remembers."""

    def __init__(self, original: Any, name: str, wrapped: Part) -> None:
        super().__init__(original)
        self.name = name
        self.wrapped = wrapped
        self.results: dict[int, Part] = {}
        """Its results that may change, by their ids."""
        self.keys: set[Any] = set()
        """The keys whose results are watched."""

    def parts(self) -> Iterable[Part]:
        """The function inside, and the results."""
        return [self.wrapped, *self.results.values()]

    def build(self, substitution: Substitution) -> Any:
        """A function that gives copies of the results."""

        def remembering(*args: Any, **keywords: Any) -> Any:
            result = self.original(*args, **keywords)
            part = self.results.get(id(result))
            return result if part is None else part.rebuilt(substitution)

        substitution.copies[id(self)] = update_wrapper(remembering, self.original)
        for name in ("cache_info", "cache_clear", "cache_parameters"):
            setattr(remembering, name, getattr(self.original, name))
        return remembering

    def remembered(self) -> tuple[dict[Any, Any], dict[Any, Any]] | None:
        """The dict in which the function remembers, and its results by their keys; None where it cannot be read."""
        found = gc.get_referents(self.original)
        held = next((one for one in reversed(found) if type(one) is dict and one is not vars(self.original)), {})
        if self.original.cache_parameters()["maxsize"] is None:
            return held, held
        # of each result: its key, the result, the type of the link that holds both
        triples = zip(found, found[1:], found[2:], strict=False)
        results = {id(key): one for key, one, link in triples if isinstance(link, type) and _is_link(link)}
        is_read = all(_is_link(type(link)) and id(key) in results for key, link in held.items())
        return (held, {key: results[id(key)] for key in held}) if is_read else None


def _is_link(kind: type) -> bool:
    return kind.__name__.endswith("_lru_list_elem")


class PartialPart(Part):
    """A functools.partial."""

    def __init__(self, original: Any, arguments: Sequence[Part], keywords: Part, attributes: Part) -> None:
        super().__init__(original)
        self.arguments = arguments
        self.keywords = keywords
        self.attributes = attributes

    def parts(self) -> Iterable[Part]:
        """The function, what is held for it, and its attributes."""
        return [*self.arguments, self.keywords, self.attributes]

    def build(self, substitution: Substitution) -> Any:
        """The same arguments held, arrays exchanged."""
        function, *arguments = [part.rebuilt(substitution) for part in self.arguments]
        made = partial(function, *arguments, **self.keywords.rebuilt(substitution))
        made.__dict__.update(self.attributes.rebuilt(substitution))
        substitution.copies[id(self)] = made
        return made


class BoundMethodPart(Part):
    """A method together with its object."""

    def __init__(self, original: Any, function: Part, owner: Part) -> None:
        super().__init__(original)
        self.function = function
        self.owner = owner

    def parts(self) -> Iterable[Part]:
        """The function and the object."""
        return (self.function, self.owner)

    def build(self, substitution: Substitution) -> Any:
        """The method of the copied object."""
        return types.MethodType(substitution.method(self.original.__func__), self.owner.rebuilt(substitution))


class WrappedPart(Part):
    """A transformation of the engine's that wraps a function: a gradient, a plan."""

    def __init__(self, original: Any) -> None:
        super().__init__(original)
        self.function: Part = Part(original.function)

    def parts(self) -> Iterable[Part]:
        """The function."""
        return (self.function,)

    def build(self, substitution: Substitution) -> Any:
        """The same transformation of the copied function."""
        made = copy.copy(self.original)
        made.__dict__.pop("selection", None)  # it holds the function that was
        substitution.copies[id(self)] = made
        function: Callable[..., Any] = self.function.rebuilt(substitution)
        object.__setattr__(made, "function", function)
        return made


class Contents:
    """A snapshot of the environment before a function is recorded: to see what it changes, and to put it back."""

    def __init__(self, parts: Iterable[Part]) -> None:
        parts = list(parts)
        self._before = [(name, place, _items(place)) for part in parts for name, place in _places(part)]
        functions = [part for part in parts if isinstance(part, FunctionPart)]
        cells = {id(cell.original): (name, cell.original) for part in functions for name, cell in part.cells.items()}
        self._cells = [(name, cell, cell.cell_contents) for name, cell in cells.values() if _is_assigned(cell)]
        self._globals = [
            (part.original.__globals__, name, part.original.__globals__[name])
            for part in functions
            for name in globals_assigned(part.original.__code__)
            if name in part.original.__globals__
        ]

    def has_traced(self) -> bool:
        """True if a traced value is among it now: the function stored one, and others would read it."""
        held = [value for _, place, _ in self._before for value in _items(place)]
        held += [cell.cell_contents for _, cell, _ in self._cells if _is_assigned(cell)]
        held += [namespace.get(name) for namespace, name, _ in self._globals]
        return any(issubclass(type(value), TracedValue) for value in held)

    def changed(self) -> str | None:
        """The name of something that has changed, if there is one."""
        for name, place, before in self._before:
            now = _items(place)
            if len(now) != len(before) or not all(map(is_same, now, before)):
                return name
        for name, cell, before in self._cells:
            if not _is_assigned(cell) or not is_same(cell.cell_contents, before):
                return name
        changed = (name for namespace, name, before in self._globals if not is_same(namespace.get(name), before))
        return next(changed, None)

    def put_back(self) -> None:
        """Restore the environment."""
        for _, place, before in self._before:
            now = _items(place)
            if len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True)):
                continue
            if isinstance(place, dict):
                was = dict(zip(before[::2], before[1::2], strict=True))
                for key in place.keys() - was.keys():
                    del place[key]
                place.update(was)
            else:
                place[:] = before
        for _, cell, value in self._cells:
            cell.cell_contents = value
        for namespace, name, value in self._globals:
            namespace[name] = value


def _items(place: Any) -> list[Any]:
    """The items of a list; keys and values of a dict, in turn."""
    return [part for item in place.items() for part in item] if isinstance(place, dict) else list(place)


def _places(part: Part) -> Iterator[tuple[str, Any]]:
    """The lists and dicts in which a function may store."""
    if isinstance(part, ContainerPart) and type(part.original) in (list, dict):
        yield part.name, part.original
    elif isinstance(part, InstancePart) and hasattr(part.original, "__dict__"):
        yield part.name, part.original.__dict__
    elif isinstance(part, ModulePart | FunctionPart):
        yield part.original.__name__, part.original.__dict__


def _held(container: Any) -> list[Any]:
    if isinstance(container, dict):
        return [*container, *container.values()]
    if isinstance(container, list):
        return list(container)
    slots = [getattr(container, name, None) for name in slots_of(type(container))]
    attributes = getattr(container, "__dict__", {})
    return [*slots, *attributes, *attributes.values()]


def _is_assigned(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 (reading it is the test)
    except ValueError:
        return False
    return True
