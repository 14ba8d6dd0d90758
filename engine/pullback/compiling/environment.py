"""The captured environment of a function: closures, globals, defaults, attributes of modules, classes and plain objects.

A compiled function must not go on with old values. Arrays, and numbers that have changed before, become hidden inputs of the
plan, read again on each call (`pullback.compiling.substitution` puts traced values in their place while recording, so that
nothing computed from them is folded). Other numbers, functions and classes are compared on each call, and a change means
recording again. Effects that happen while recording (writing, drawing random numbers) are noticed by
`pullback.compiling.side_effects`. What can be neither watched nor noticed (iterators, files) keeps the function on the tape, with
the reason. The list is of what is allowed: anything unknown is an obstacle.
"""

import builtins
import importlib.util
import itertools
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from enum import EnumMeta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import trees
from pullback.blocks import Block
from pullback.compiling import code_facts
from pullback.compiling.captured_references import (
    CLASS_LABELS,
    UNASSIGNED,
    Attributes,
    ClosureVariable,
    Code,
    Defaults,
    FixedReference,
    Item,
    Keys,
    KeywordDefaults,
    Kind,
    Members,
    Names,
    NamespaceEntry,
    ObjectIdentity,
    Place,
    PlaceKey,
    Slot,
    TypeOfInput,
    key_of,
)
from pullback.compiling.constancy import (
    C_DESCRIPTORS,
    HARMLESS_ATTRIBUTES,
    LRU_CACHE,
    added_to,
    functions_of,
    has_plain_metaclass,
    holds_what_cannot_be_seen,
    is_constant,
    is_constant_class,
    is_fixed,
    is_made_by_dataclass,
    is_plain_class,
    is_plain_member,
    is_suspicious,
    of_constant_package,
    package,
    slots_of,
)
from pullback.compiling.side_effects import Generator, is_generator, is_logger
from pullback.compiling.substitution import (
    BlockPart,
    BoundMethodPart,
    CellPart,
    ContainerPart,
    Contents,
    DefinitionPart,
    FunctionPart,
    InputPart,
    InstancePart,
    Method,
    ModulePart,
    Part,
    PartialPart,
    RememberingPart,
    Substitution,
    WrappedPart,
)
from pullback.compiling.watched_values import ArrayContents, Identities, changes_of, is_as_it_was, is_exactly
from pullback.core.types import ArrayType, type_of
from pullback.custom import CustomPrimitive
from pullback.rule import StatefulRule

if TYPE_CHECKING:
    from logging import Logger

#: Arrays that a method or a class reads are compared with a copy on each call, up to this size.
LARGEST_COMPARED_BYTES = 16 * 1024

#: Results of a function with functools.lru_cache that are watched at most.
MOST_REMEMBERED = 64

_CONTAINERS = (tuple, list, dict)
_METHODS = (types.FunctionType, staticmethod, classmethod)
#: Types of numbers that may be hidden inputs.
NUMBERS = (float, int, np.float64, np.float32, np.int64, np.int32)
_STANDARD_LIBRARY = str(Path(types.__file__).parent)


class Environment:
    """The captured environment of one function: a check that it is unchanged, and its hidden inputs.

    `beside` has what its arguments lead to beside their leaves: their classes, say. Numbers in the places `varying` are inputs
    as arrays are. Functions of other packages are looked into only if their code is among `looked_into`: of most that a
    program can reach, none runs.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        varying: Collection[PlaceKey] = (),
        looked_into: Collection[types.CodeType] = (),
        beside: Sequence[Any] = (),
    ) -> None:
        self.function = function
        self.beside = beside
        self._has_equals = any(
            type(one) is not str and not isinstance(one, type | types.FunctionType | None) for one in beside
        )
        self.varying = frozenset(varying)
        self.looked_into = frozenset(looked_into)
        self.left_out: set[types.CodeType] = set()
        """Code that was not looked into; where it runs, looking has to begin again."""
        self.catches_errors = False
        self.generators: list[Generator] = []
        self.input_names: list[str] = []
        self._inputs: list[Place] = []
        self._types: list[ArrayType] = []
        self._in_classes: list[tuple[type, str, int]] = []
        """Numbers in classes that are inputs: the class, the name, the number among the inputs."""
        self._methods: dict[int, Method] = {}
        """Methods whose numbers may be inputs, by their ids."""
        self._looked_at: dict[type, frozenset[str]] = {}
        self._remembered: list[tuple[Place, Any, str]] = []
        self._walked: dict[tuple[int, bool], Part] = {}
        self._first_seen: dict[int, tuple[Place, Any]] = {}
        self._found: dict[Any, Part] = {}
        self._escaped: dict[int, tuple[ModulePart, str, bool]] = {}
        self._attributes: set[str] = set()
        self._reads_any_attribute = False
        self._is_suspicious = False
        self._keys: set[int] = set()
        """Ids of the objects that are keys of dicts or elements of sets."""
        self._remembering: list[RememberingPart] = []
        self._compares_identities = False
        self.compares_with_truth = False
        """True if some code asks `x is True` or `x is False`, which no traced value is."""
        self.asks_for_types = False
        """True if some code calls `type(x)`: a number that is an input is of another type while recording, unseen."""
        self.against_numbers: str | None = None
        """The reason why no argument may be a Python number: some code tests `type(x) is float`."""
        self.numbers_matter = False
        """True if the function read the text of a number that is an input in the latest recording."""
        self._root = self._look_at("the function", FixedReference(function), comparing=False)
        seen = [
            self._look_at(getattr(one, "__name__", f"a {type(one).__name__}"), FixedReference(one), comparing=True)
            for one in beside
        ]
        self._look_into_escaped()
        self._settle_methods()
        self._find_what_moves()
        self._find_obstacles()
        self.obstacle = next(itertools.chain.from_iterable(map(self._obstacles_of, (self._root, *seen))), None)

    @property
    def input_types(self) -> Sequence[ArrayType]:
        """Types of the hidden inputs, in order; other types mean recording anew."""
        return self._types

    @property
    def inputs(self) -> Sequence[Place]:
        """The places of the hidden inputs."""
        return self._inputs

    @property
    def watched(self) -> Sequence[tuple[Place, Any]]:
        """The places of everything else that is watched, with the values expected there."""
        return [(place, value) for place, value, _ in self._remembered]

    @property
    def compares_contents(self) -> bool:
        """True if arrays are compared element by element."""
        return any(isinstance(value, ArrayContents) for _, value, _ in self._remembered)

    def read(self) -> list[Any]:
        """The hidden inputs as they are now."""
        return [getter() for getter in self._inputs]

    def numbers(self) -> dict[int, PlaceKey]:
        """The places of those hidden inputs that are numbers, by number of the input."""
        return {number: key_of(place) for number, place in enumerate(self._inputs) if key_of(place) in self.varying}

    def is_for(self, args: tuple[Any, ...]) -> bool:
        """True if arguments with an equal structure have what these had: 1 equals True, and a class says what is equal."""
        return not self._has_equals or all(map(is_exactly, trees.beside(args), self.beside))

    def unchanged(self) -> bool:
        """True if everything but the contents of the inputs is still what it was."""
        for getter, value, _ in self._remembered:
            now = getter()
            if now is not value and not is_as_it_was(now, value):
                return False
        return True

    def changes(self) -> list[tuple[str, Place, Any]]:
        """The name and place of every object that was replaced, with the former object."""
        return [
            change
            for getter, value, name in self._remembered
            if (now := getter()) is not value and not is_as_it_was(now, value)
            for change in changes_of(name, getter, now, value)
        ]

    def substituted(self, inputs: Sequence[Any]) -> tuple[Callable[..., Any], Substitution]:
        """The function with these in place of the arrays and numbers around it."""
        substitution = Substitution(inputs, self._in_classes, self._methods)
        function = self._root.rebuilt(substitution)
        substitution.note_modules()
        return function, substitution

    @cached_property
    def before(self) -> Contents:
        """The values of the environment when this is first called, until `forget`."""
        return Contents(self._walked.values())

    def forget(self) -> None:
        """Forget what the things around the function held: arrays among it may be replaced, and are not for us to keep."""
        self.__dict__.pop("before", None)

    # --- what is noticed while recording ----------------------------------------------------------------------------
    @property
    def obstacles(self) -> Mapping[types.CodeType, str]:
        """The reasons why reachable functions cannot be compiled, by their code; most are never run."""
        functions = (part for part in self._walked.values() if isinstance(part, FunctionPart))
        found = ((part.original.__code__, next(iter(self._obstacles_of(part)), None)) for part in functions)
        return {code: obstacle for code, obstacle in found if obstacle is not None}

    def remembers_more(self) -> bool:
        """True if functions with functools.lru_cache remember what may change and was not there when they were looked at."""
        for part in self._remembering:
            found = part.remembered()
            if part.obstacle is None and found is not None:
                if any(id(result) not in part.results and not is_constant(result) for result in found[1].values()):
                    return True
                self._forget_forgotten(part, found[0])
                self._watch_remembered(part)
        return False

    def _forget_forgotten(self, part: RememberingPart, held: dict[Any, Any]) -> None:
        """Watch no results any more that a function with a bound forgot while it was recorded."""
        part.keys &= held.keys()
        self._remembered = [
            (place, value, name)
            for place, value, name in self._remembered
            if not (isinstance(place, NamespaceEntry) and place.namespace is held and place.name not in held)
        ]

    @property
    def is_suspicious(self) -> bool:
        """True if recording has to be watched."""
        if self._is_suspicious or self.left_out or self.obstacles:
            return True
        return any(part.obstacle for part in self._walked.values())

    def watch_logger(self, logger: "Logger") -> None:
        """Watch what a logger writes."""
        above: Any = logger
        self._watch(NamespaceEntry(logger.manager.__dict__, "_disable"), logger.manager.disable, "logging.disable")
        while above is not None:
            for attribute in ("disabled", "level", "parent"):
                value = above.__dict__[attribute]
                self._watch(NamespaceEntry(above.__dict__, attribute), value, f"the {attribute} of logger {above.name}")
            above = above.parent if not above.level else None

    def _obstacles_of(self, part: Part) -> Iterator[str]:
        """The obstacle to compiling a function that reads a thing; what the functions that it may call read is theirs."""
        seen, waiting = {id(part)}, [part]
        for one in waiting:
            if one.obstacle is not None:
                yield one.obstacle
            if isinstance(one, FunctionPart) and one.against_inputs is not None and self._inputs:
                yield one.against_inputs
            further = [] if isinstance(one, FunctionPart) and one is not part else one.parts()
            waiting.extend(other for other in further if id(other) not in seen)
            seen.update(map(id, further))

    def _find_what_moves(self) -> None:
        parts: dict[int, Part] = {}
        leading: dict[int, list[Part]] = {}
        waiting = [self._root, *self._walked.values()]
        for part in waiting:
            if id(part) not in parts:
                parts[id(part)] = part
                for other in part.parts():
                    leading.setdefault(id(other), []).append(part)
                    waiting.append(other)
        waiting = [part for part in parts.values() if part.moves]
        for part in waiting:
            fresh = [other for other in leading.get(id(part), ()) if not other.moves]
            for other in fresh:
                other.moves = True
            waiting.extend(fresh)

    def _find_obstacles(self) -> None:
        """Name the obstacles that everything together shows: objects whose copies would be told apart, states of generators."""
        for (identity, comparing), part in self._walked.items():
            if isinstance(part, InstancePart) and part.moves:
                kind = type(part.original)
                if hasattr(kind, "__del__"):
                    part.obstacle = f"{part.name} is a {kind.__name__}, whose copies would run its __del__"
                elif identity in self._keys or (
                    self._compares_identities and (identity, not comparing) in self._walked
                ):
                    part.obstacle = f"{part.name} is compared by identity, and a plan records with a copy of it"
                elif any(isinstance(member, LRU_CACHE) for base in kind.__mro__ for member in vars(base).values()):
                    part.obstacle = f"{part.name} is a {kind.__name__}, whose methods cache results for it"
                else:
                    continue
                part.obstacle += "; pass its arrays as arguments"
            elif isinstance(part, FunctionPart) and part.obstacle is None:
                facts = code_facts.reads_random_states(part.original.__code__)
                if facts == "global" or (facts == "any" and self.generators):
                    part.obstacle = (
                        f"{part.original.__name__} reads the state of a random generator; pass it as an argument"
                    )

    # --- walking ----------------------------------------------------------------------------------------------------
    def _watch(self, getter: Place, value: Any, name: str) -> None:
        if not (isinstance(getter, FixedReference) and getter.value is value):
            self._remembered.append((getter, value, name))

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

    def _look(self, name: str, getter: Place, *, comparing: bool) -> Part:  # noqa: PLR0911 - one for each kind
        value = getter()
        if type(value) is np.ndarray:
            return self._look_at_array(name, getter, value, comparing=comparing)
        if isinstance(value, np.ndarray):
            return Part(value, f"{name} is a {type(value).__name__}, not a plain array; pass it as an argument")
        if type(value) in _CONTAINERS or hasattr(type(value), "_make"):
            return self._look_into_container(name, getter, value, comparing=comparing)
        if type(value) in NUMBERS and not comparing and key_of(getter) in self.varying:
            return self._input(name, getter, value)
        self._watch(getter, value, name)
        if isinstance(value, types.ModuleType) and not is_constant(value):
            return self._look_into_module(name, value, [()], comparing=comparing)
        self._is_suspicious |= is_suspicious(value)
        if is_constant(value):
            return Part(value)
        if isinstance(value, frozenset | slice) or type(value) is set:
            if type(value) is set:
                self._watch(lambda: tuple(value), tuple(value), name)
            held = (value.start, value.stop, value.step) if isinstance(value, slice) else value
            return DefinitionPart(value, [self._look_at_key(name, one) for one in held])
        if isinstance(value, Block):
            array = self._look_at(f"{name}.array", lambda: value.array, comparing=comparing)
            return BlockPart(value, array)
        return self._look_inside_once(name, value, comparing=comparing)

    def _look_inside_once(self, name: str, value: Any, *, comparing: bool) -> Part:
        if comparing and isinstance(value, types.FunctionType):
            self._method(value).reached += 1
        known = self._walked.get((id(value), comparing))
        return known if known is not None else self._look_inside(name, value, comparing=comparing)

    def _input(self, name: str, getter: Place, value: Any) -> Part:
        self._inputs.append(getter)
        self.input_names.append(name)
        self._types.append(type_of(value))
        self._watch(TypeOfInput(getter, type(value)), type_of(value), f"the type of {name}")
        return InputPart(len(self._inputs) - 1)

    def _look_at_key(self, name: str, key: Any) -> Part:
        """A key of a dict or an element of a set, which is found there by what it is: a copy would not be."""
        if not is_constant(key):
            self._keys.add(id(key))
        return self._look_at(name, FixedReference(key), comparing=True)

    def _look_at_array(self, name: str, getter: Place, value: Any, *, comparing: bool) -> Part:
        if value.dtype.kind not in "biufc" or not value.dtype.isnative:
            mend = (
                ""
                if value.dtype.isnative
                else f"; make it one of this machine's byte order: {name}.astype('{value.dtype.str[1:]}')"
            )
            return Part(value, f"{name} is an array of dtype {value.dtype}, which plans do not take{mend}")
        if not comparing:
            return self._input(name, getter, value)
        if value.nbytes > LARGEST_COMPARED_BYTES:
            self._watch(getter, value, name)  # another one may be compared
            return Part(
                value,
                f"{name} is an array that a class reads, too large to be compared on each call; make it an attribute",
            )
        self._watch(getter, ArrayContents(value), name)
        return Part(value)

    def _look_inside(self, name: str, value: Any, *, comparing: bool) -> Part:  # noqa: PLR0911 - as above
        key = (id(value), comparing)
        if isinstance(value, types.FunctionType):
            part = self._walked[key] = FunctionPart(value)
            self._look_into_function(value, part, comparing=comparing)
            return part
        if isinstance(value, type | CustomPrimitive | StatefulRule | LRU_CACHE) or is_fixed(value):
            return self._look_into_definition(name, value, key)
        if isinstance(value, partial):
            looked = [
                self._look_at(name, FixedReference(part), comparing=comparing) for part in (value.func, *value.args)
            ]
            keywords, attributes = (
                self._look_at(name, FixedReference(held), comparing=comparing)
                for held in (value.keywords, value.__dict__)
            )
            self._walked[key] = PartialPart(value, looked, keywords, attributes)
            return self._walked[key]
        if isinstance(value, types.MethodType):
            method = self._method(value.__func__)
            method.exchanged += not comparing
            function = self._look_at(name, FixedReference(value.__func__), comparing=True)
            owner = self._look_at(_owner(name), FixedReference(value.__self__), comparing=comparing)
            bound = BoundMethodPart(value, function, owner)
            method.bound.append(bound)
            return bound
        if isinstance(value, types.BuiltinFunctionType):  # a method of something made by a module written in C
            self._look_at(_owner(name), FixedReference(value.__self__), comparing=True)
            return Part(value)
        if is_generator(value):
            self.generators.append(value)
            return Part(value)
        if is_logger(value):
            self._is_suspicious = True
            self._watch(NamespaceEntry(value.__dict__, "level"), value.level, f"the level of logger {value.name}")
            return Part(value)
        if type(value).__module__.startswith("pullback.") and callable(getattr(value, "function", None)):
            wrapped = self._walked[key] = WrappedPart(value)
            wrapped.function = self._look_at(name, FixedReference(value.function), comparing=comparing)
            return wrapped
        return self._look_into_instance(name, value, comparing=comparing)

    def _look_into_definition(self, name: str, value: Any, key: tuple[int, bool]) -> Part:
        """A class, a rule, a cached function, a number, text or member of an enumeration of a class of the user's.

        None is made again, so what its functions read is compared.
        """
        if isinstance(value, LRU_CACHE):
            return self._look_into_remembering(name, value, key)
        part = self._walked[key] = DefinitionPart(value)
        if isinstance(value, type):
            self._look_into_class(name, value, part)
        elif is_fixed(value):
            attributes = added_to(value)
            self._watch(Names(attributes), tuple(attributes), f"the attributes of {name}")
            places: list[Place] = [
                FixedReference(type(value)),
                *[NamespaceEntry(attributes, attribute) for attribute in attributes],
            ]
            part.members += [self._look_at(name, place, comparing=True) for place in places]
        else:
            self._watch(lambda: value.user_functions, value.user_functions, name)
            part.members += [
                self._look_at(name, FixedReference(function), comparing=True) for function in value.user_functions
            ]
        return part

    def _look_into_remembering(self, name: str, function: Any, key: tuple[int, bool]) -> Part:
        """A function with functools.lru_cache: what it gave before is given again, and may have been changed since."""
        part = RememberingPart(
            function, name, self._look_at(name, FixedReference(function.__wrapped__), comparing=True)
        )
        self._walked[key] = part
        self._remembering.append(part)
        found = part.remembered()
        if found is None:
            part.obstacle = f"{name} caches results that cannot be inspected"
            return part
        changeable = [result for result in found[1].values() if not is_constant(result)]
        if len(changeable) > MOST_REMEMBERED:
            part.obstacle = f"{name} remembers {len(changeable)} arrays or objects, too many to compare on each call"
            return part
        self._watch_remembered(part)
        for result in changeable:
            part.results[id(result)] = self._look_at(f"what {name} remembers", FixedReference(result), comparing=key[1])
        return part

    def _watch_remembered(self, part: RememberingPart) -> None:
        """Watch that the function goes on to remember what it does, if that is not too much."""
        held, results = part.remembered() or ({}, {})
        if len(results) <= MOST_REMEMBERED:
            for key in results:
                if is_constant(key) and key not in part.keys:  # looked up natively: others may run code of a class
                    part.keys.add(key)
                    self._watch(NamespaceEntry(held, key), held[key], f"what {part.name} remembers")

    def _look_into_function(self, function: types.FunctionType, part: FunctionPart, *, comparing: bool) -> None:
        code = function.__code__
        self._watch(Code(function), code, f"the code of {function.__name__}")
        if _is_of_another_package(function) and code not in self.looked_into and function is not self.function:
            self.left_out.add(code)
            return
        for attribute in function.__dict__.keys() - HARMLESS_ATTRIBUTES:
            part.obstacle = (
                f"{function.__name__} has an attribute {attribute}, which may change; pass it as an argument"
            )
        if "__wrapped__" in function.__dict__:
            part.wrapped = self._look_at(
                function.__name__, NamespaceEntry(function.__dict__, "__wrapped__"), comparing=comparing
            )
        method = self._method(function) if comparing else None
        self._look_at_captured(function, part, method, comparing=comparing)
        part.defaults = self._look_at("a default", Defaults(function), comparing=comparing)
        part.keyword_defaults = self._look_at("a default", KeywordDefaults(function), comparing=comparing)
        if of_constant_package(function):
            return
        namespace, chains = function.__globals__, code_facts.chains_read(code)
        for name in code_facts.globals_read(code):
            if self._is_input_of(method, name, NamespaceEntry(namespace, name)):
                continue
            part.globals_[name] = self._look_at_variable(
                name, NamespaceEntry(namespace, name), chains.get(name), comparing=comparing
            )
            if name in namespace:
                continue
            self._is_suspicious |= name in code_facts.EFFECTIVE
            if not isinstance(vars(builtins).get(name), types.BuiltinFunctionType | type):
                part.imported.append(self._look_at(name, NamespaceEntry(vars(builtins), name), comparing=True))
        self._look_at_code(function, part)

    def _look_at_captured(
        self, function: types.FunctionType, part: FunctionPart, method: Method | None, *, comparing: bool
    ) -> None:
        code = function.__code__
        chains, assigned = code_facts.chains_read(code), code_facts.captured_names_assigned(code)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if name not in assigned and self._is_input_of(method, name, ClosureVariable(cell)):
                continue
            contents = self._look_at_variable(name, ClosureVariable(cell), chains.get(name), comparing=comparing)
            part.cells[name] = CellPart(cell, contents)
            if name in assigned and type(contents) is not Part:
                part.against_inputs = f"{function.__name__} assigns {name}, which it captures; pass and return it"

    def _method(self, function: Any) -> Method:
        return self._methods.setdefault(id(function), Method(function))

    def _is_input_of(self, method: Method | None, name: str, place: NamespaceEntry | ClosureVariable) -> bool:
        """True of a number that a method reads and that is an input now, because it has changed before."""
        if method is None or not method.exchanged or type(place()) not in NUMBERS or key_of(place) not in self.varying:
            return False
        number = self._look_at(name, place, key_of(place), comparing=False)
        if not isinstance(number, InputPart):
            return False
        method.numbers[name] = number.number
        return True

    def _settle_methods(self) -> None:
        """Compare numbers of a method, too, that is also reached where no other function can stand in its place."""
        for method in self._methods.values():
            for bound in method.bound:
                bound.moves = bool(method.numbers)
            if method.reached > method.exchanged:
                for name, number in method.numbers.items():
                    self._watch(self._inputs[number], self._inputs[number](), name)

    def _look_at_variable(
        self,
        name: str,
        getter: NamespaceEntry | ClosureVariable,
        chains: Collection[tuple[str, ...]] | None,
        *,
        comparing: bool,
    ) -> Part:
        """A variable of a function; of a module in it only what the code reads, where the code alone tells."""
        value = getter()
        if isinstance(value, types.ModuleType) and not is_constant(value):
            self._watch(getter, value, name)
            return self._look_into_module(name, value, chains or [()], comparing=comparing)
        return self._look_at(name, getter, key_of(getter), comparing=comparing)

    def _look_at_code(self, function: types.FunctionType, part: FunctionPart) -> None:
        """The obstacle in the code itself: it imports, draws, reads, assigns or tests what a plan cannot follow."""
        code, name = function.__code__, function.__name__
        attributes = code_facts.attributes_read(code)
        self._attributes |= attributes
        self._is_suspicious |= "__subclasses__" in attributes
        self._reads_any_attribute |= code_facts.reads_any_attribute(code)
        self._is_suspicious |= code_facts.draws_random_numbers(code) or code_facts.reads_files(code)
        self.asks_for_types |= code_facts.asks_for_types(code)
        self._compares_identities |= code_facts.compares_identities(code)
        self.compares_with_truth |= code_facts.compares_with_truth(code)
        self.catches_errors |= code_facts.catches_errors(code)
        for found in code_facts.imports(code):
            self._look_at_import(function, found, part)
        if code_facts.globals_assigned(code):
            part.against_inputs = f"{name} assigns a global; return the value instead"
        type_test = code_facts.type_asked_for(code)
        if type_test is not None:
            class_, of_python = type_test
            short = class_.removeprefix("numpy.")
            reason = f"{name} asks for type(x) and {short}, which a traced value is not; ask isinstance(x, {class_})"
            if of_python:
                self.against_numbers = reason
            else:
                part.obstacle = reason

    def _look_at_import(self, function: types.FunctionType, found: code_facts.Import, part: FunctionPart) -> None:
        """An import inside a function gives the module itself and no copy, so what is read of it is compared."""
        namespace = function.__globals__
        name = found.module
        if found.level:
            inside = namespace.get("__package__") or str(namespace.get("__name__")).rpartition(".")[0]
            name = importlib.util.resolve_name("." * found.level + name, inside)
        for known in {name, package(name)} if not found.names else {name}:
            module = sys.modules.get(known)
            self._watch(
                NamespaceEntry(sys.modules, known), UNASSIGNED if module is None else module, f"the module {known}"
            )
            if isinstance(module, types.ModuleType) and not is_constant(module):
                chains: list[tuple[str, ...]] = [(attribute,) for attribute in found.names] or [()]
                part.imported.append(self._look_into_module(known, module, chains, comparing=True))
                self._attributes.update(name.split("."))
            elif module is not None and is_suspicious(module):
                self._is_suspicious = True

    def _look_into_module(
        self, name: str, module: types.ModuleType, chains: Iterable[tuple[str, ...]], *, comparing: bool
    ) -> ModulePart:
        """The attributes of attributes that are read of a module; by what code ever, if it is handed on."""
        key = (id(module), comparing)
        part = self._walked.get(key)
        if not isinstance(part, ModulePart):
            part = self._walked[key] = ModulePart(module)
            if "__getattr__" in module.__dict__:
                self._look_at_attribute(name, part, ("__getattr__",), comparing=comparing)
            if type(module) is not types.ModuleType:
                part.obstacle = f"{name} is a {type(module).__name__}, whose attributes may change between calls unseen"
        for chain in chains:
            if chain:
                self._look_at_attribute(name, part, chain, comparing=comparing)
            else:
                self._escaped.setdefault(id(part), (part, name, comparing))
        return part

    def _look_at_attribute(self, name: str, part: ModulePart, chain: tuple[str, ...], *, comparing: bool) -> None:
        attribute, further = chain[0], chain[1:]
        namespace = part.original.__dict__
        getter, name = NamespaceEntry(namespace, attribute), f"{name}.{attribute}"
        value = getter()
        if value is UNASSIGNED:
            self._watch(getter, UNASSIGNED, name)
        elif isinstance(value, types.ModuleType) and not is_constant(value):
            self._watch(getter, value, name)
            part.attributes[attribute] = self._look_into_module(name, value, [further], comparing=comparing)
        else:
            part.attributes[attribute] = self._look_at(name, getter, key_of(getter), comparing=comparing)

    def _look_into_escaped(self) -> None:
        """Modules that are handed on as values: every attribute that some code reads may be read of them."""
        looked: set[tuple[int, str]] = set()
        while True:
            fresh = [
                (part, name, attribute, comparing)
                for part, name, comparing in self._escaped.values()
                for attribute in (list(part.original.__dict__) if self._reads_any_attribute else self._attributes)
                if (id(part), attribute) not in looked and (attribute in part.original.__dict__ or self.catches_errors)
            ]
            if not fresh:
                break
            for part, name, attribute, comparing in fresh:
                looked.add((id(part), attribute))
                if not (attribute.startswith("__") and attribute.endswith("__")):
                    self._look_at_attribute(name, part, (attribute,), comparing=comparing)
        if self._reads_any_attribute or self.catches_errors:
            modules = [part.original for part, _, _ in self._escaped.values()] if self._reads_any_attribute else []
            functions = [part.original for part in self._walked.values() if isinstance(part, FunctionPart)]
            for one in (*modules, *functions):
                self._watch(Names(one.__dict__), tuple(one.__dict__), f"the attributes of {one.__name__}")

    def _look_into_container(self, name: str, getter: Place, value: Any, *, comparing: bool) -> Part:
        self._watch(Keys(getter), Keys(FixedReference(value))(), f"the length or keys of {name}")
        first, _ = self._first_seen.setdefault(id(value), (getter, value))
        if first is not getter:
            # Reached by two names, it is watched by its identity under both: either may be given another one.
            for name_of_it in (first, getter):
                self._watch(ObjectIdentity(name_of_it), Identities(value), name)
        known = self._walked.get((id(value), comparing))
        if known is not None:
            return known
        part = ContainerPart(value, name)
        self._walked[id(value), comparing] = part
        if type(value) not in _CONTAINERS:
            part.beside.append(self._look_at(type(value).__name__, FixedReference(type(value)), comparing=True))
        for key in value if isinstance(value, dict) else range(len(value)):
            if not is_constant(key):
                part.beside.append(self._look_at_key(f"a key of {name}", key))
            part.items[key] = self._look_at(f"{name}[{key!r}]", Item(getter, key), comparing=comparing)
        return part

    def _look_into_instance(self, name: str, value: Any, *, comparing: bool) -> Part:
        """A plain object: it has attributes and slots, and its class does nothing when they are read."""
        kind = type(value)
        attributes = getattr(value, "__dict__", {})
        if not is_plain_class(kind) or holds_what_cannot_be_seen(kind) or type(attributes) is not dict:
            return Part(
                value,
                f"{name} is a {kind.__name__}, whose contents may change between calls unnoticed; "
                "pass the values that are needed as an argument",
            )
        part = InstancePart(value, name, self._look_at(kind.__name__, FixedReference(kind), comparing=True))
        self._walked[id(value), comparing] = part
        if hasattr(value, "__dict__"):
            self._watch(Attributes(value), Identities(kind, attributes), f"the class of {name}")
            self._watch(Names(attributes), tuple(attributes), f"the attributes of {name}")
        else:
            self._watch(Kind(value), Identities(kind), f"the class of {name}")
        places: dict[str, Place] = {attribute: NamespaceEntry(attributes, attribute) for attribute in attributes}
        places |= {slot: Slot(value, slot) for slot in slots_of(kind)}
        for attribute, getter in places.items():
            looked = self._look_at(f"{name}.{attribute}", getter, comparing=comparing)
            if looked.original is not UNASSIGNED:
                part.attributes[attribute] = looked
        return part

    def _look_into_class(self, name: str, class_: type, part: DefinitionPart) -> None:
        if not has_plain_metaclass(class_):
            part.obstacle = f"{name} is a {type(class_).__name__}, whose attributes may change between calls unseen"
            return
        for base in class_.__mro__:
            if is_constant_class(base):
                continue
            factories = [field.default_factory for field in vars(base).get("__dataclass_fields__", {}).values()]
            part.members += [
                self._look_at(f"a default of {name}", FixedReference(factory), comparing=True)
                for factory in factories
                if factory is not MISSING
            ]
            if isinstance(base, EnumMeta):
                values: dict[str, Any] = dict(base.__members__)
                part.members += [
                    self._look_at(f"{name}.{key}", FixedReference(value), comparing=True)
                    for key, value in values.items()
                ]
            inputs = self._inputs_of_class(base)
            members = Members(base, inputs)
            self._watch(members, Identities(*members()), f"the members of {base.__name__}")
            for key, member in vars(base).items():
                if key in CLASS_LABELS or key in inputs:
                    continue
                if isinstance(member, C_DESCRIPTORS) or is_made_by_dataclass(member):
                    continue
                if type(member) in _METHODS and (key == "__call__" or not key.startswith("__")):
                    method = self._method(functions_of(member)[0])
                    method.exchanged += 1
                    method.places = [*dict.fromkeys([*method.places, (base, key)])]
                part.members += [
                    self._look_at(f"{name}.{key}", FixedReference(one), comparing=True) for one in functions_of(member)
                ]
                if not is_plain_member(member):
                    part.obstacle = (
                        f"{name}.{key} is a {type(member).__name__}, which may give another value on each call"
                    )

    def _inputs_of_class(self, class_: type) -> frozenset[str]:
        """Names of the numbers in a class that are inputs, because they have changed before."""
        if class_ in self._looked_at:  # a base of several
            return self._looked_at[class_]
        members = Members(class_)
        places = {
            name: place
            for name in members.names()
            if not (name.startswith("__") and name.endswith("__"))
            and type((place := members.member(name))()) in NUMBERS
            and key_of(place) in self.varying
        }
        for name, place in places.items():
            self._in_classes.append((class_, name, len(self._inputs)))
            self._input(f"{class_.__name__}.{name}", place, place())
        self._looked_at[class_] = frozenset(places)
        return self._looked_at[class_]


def _owner(method: str) -> str:
    """The name of the object that a method is of."""
    return "self" if method == "the function" else f"{method}.__self__"


def _is_of_another_package(function: types.FunctionType) -> bool:
    """True if a function is of the standard library or of an installed package: not the user's own."""
    file = function.__code__.co_filename
    return file.startswith((_STANDARD_LIBRARY, "<frozen")) or "site-packages" in file
