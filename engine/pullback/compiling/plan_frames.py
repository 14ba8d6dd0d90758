"""Frames of plans: native entry of calls of a plan, for arguments of one kind.

The native entry fetches the arguments and the arrays around the function, and looks whether everything else around it is as
it was, step by step. A plan whose environment it cannot look at is called through Python.
"""

import gc
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from pullback import trees
from pullback.backends.native.entry import (
    ABSENT,
    Check,
    Fetch,
    FunctionResult,
    Leaf,
    NotNativeError,
    Question,
    Step,
    Template,
    WatchedMemory,
    argument_steps,
    item_fetch,
    leaf_like,
    makings,
    plain_form,
    steps_of,
)
from pullback.compiling.captured_references import (
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
    Slot,
    TypeOfInput,
)
from pullback.compiling.environment import Environment
from pullback.compiling.specialization import Program
from pullback.core.primitive import GIVEN
from pullback.devices import PRECISION_IN_FORCE


def template_of(program: Program, args: tuple[Any, ...], environment: Environment) -> Template:
    """The template of frames for calls with arguments like these, as long as the environment is what it is now."""
    native = program.compiled.native
    if native is None:
        raise NotNativeError("a part of the program is not native")
    if environment.compares_contents:
        raise NotNativeError("an array of a class is compared by what it holds")
    steps = _Steps(argument_steps(args))
    for place, _ in environment.watched:
        steps.watch(place)
    for number, place in enumerate(environment.inputs, len(trees.flatten(args)[0])):
        leaf = leaf_like(number, place())
        steps.add(place, leaf.check, leaf.expected, number)
    outs = plain_form(native.results)
    try:
        form = program.finish.form(outs)
        makings(form)
    except NotNativeError:
        form = FunctionResult(program.finish.run, outs)
    apart = _apart(steps.steps, program.overwritten)
    return Template(native, len(args), steps.steps, form, apart=apart, takes_out=True, held=steps.held)


def template_of_graph(program: Program, args: tuple[Any, ...], environment: Environment, entrance: Any) -> Template:
    """The template of frames for calls with arrays on a device like these, which launch a graph (`backends/cuda/entrance.py`)."""
    if environment.compares_contents or environment.inputs:
        raise NotNativeError("what is around the function is put on the device")
    leaves, rebuild = trees.flatten(args)
    inputs = entrance.inputs()
    if len(leaves) != len(inputs):
        raise NotNativeError("an argument is not on the device")
    found = steps_of(rebuild(iter([Leaf(number, Check.TYPE, type(leaf)) for number, leaf in enumerate(leaves)])))
    values = _fetched(found, args)
    steps = _Steps([replace(step, place=-1) for step in found])
    places = {step.place: at for at, step in enumerate(found) if step.place >= 0}
    questions = [*entrance.questions(), Question(PRECISION_IN_FORCE.get, PRECISION_IN_FORCE.get())]
    for number, type_tests in enumerate(inputs):
        array, at = values[places[number]], places[number]
        if array.memory is not None and array.memory is not GIVEN:
            raise NotNativeError("an argument was stored into")
        for name in ("memory", "traced_by"):
            steps.steps.append(Step(Fetch.SLOT, name, Check.IDENTITY, getattr(array, name), at))
        steps.steps.append(Step(Fetch.SLOT, "tensor", Check.TYPE, type(array.tensor), at))
        questions += [Question(function, expected, len(steps.steps) - 1) for function, expected in type_tests]
    for place, _ in environment.watched:
        steps.watch(place)
    return Template(
        entrance.program,
        len(args),
        steps.steps,
        FunctionResult(entrance.result(program.finish, program.compiled.run), ()),
        held=steps.held,
        questions=questions,
        leaves=[places[number] for number in range(len(leaves))],
    )


def _fetched(steps: Sequence[Step], args: tuple[Any, ...]) -> list[Any]:
    """The objects that the steps of arguments fetch."""
    values: list[Any] = []
    for step in steps:
        if step.fetch is not Fetch.ARGUMENT and step.fetch not in _ITEMS:
            raise NotNativeError("an argument is a node of a tree that is no container")
        values.append((args if step.fetch is Fetch.ARGUMENT else values[step.parent])[step.what])
    return values


def _apart(steps: Sequence[Step], overwritten: Collection[int]) -> list[tuple[int, int]]:
    """Pairs of steps that fetch arrays one of which is overwritten, for a time, before the others are read."""
    arrays = [number for number, step in enumerate(steps) if step.check is Check.ARRAY]
    written = [number for number in arrays if steps[number].place in overwritten]
    return [(one, other) for one in written for other in arrays if other != one]


class _Steps:
    """Steps, each after those that fetch what it needs."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.held = WatchedMemory()
        self._containers: dict[tuple[str, int], int] = {}
        self._functions: set[Any] = set()
        self._places: list[Place] = []  # alive, so that no other one has its id

    def add(self, place: Place, check: Check, expected: Any, number: int = -1, length: int = 0) -> int:
        """Fetch what is in a place, and check it."""
        fetch, what, parent = self._fetch(place)
        self.steps.append(Step(fetch, what, check, expected, parent, number, length))
        return len(self.steps) - 1

    def watch(self, place: Place) -> None:  # noqa: C901 - one for each kind of place
        """Look whether a place has what it has now."""
        match place:
            case NamespaceEntry(namespace) | Names(namespace) if type(namespace) is not dict:
                raise NotNativeError(f"names are looked up in a {type(namespace).__name__}")
            case Keys(container):
                self._watch_keys(container)
            case ObjectIdentity(of):
                self._watch_identity(of)
            case Attributes(instance):
                self._append(Fetch.TYPE, instance, type(instance))
                self._append(Fetch.ATTRIBUTES, instance, instance.__dict__)
            case Kind(instance):
                self._append(Fetch.TYPE, instance, type(instance))
            case Names(namespace):
                self._watch_keys(FixedReference(namespace))
            case Members(class_):
                (namespace,) = gc.get_referents(vars(class_))  # the dict itself, of which vars gives a view
                for key in place.names():
                    self._watch_identity(NamespaceEntry(namespace, key))
                self._container(FixedReference(namespace))
            case TypeOfInput():
                pass  # it is an input, and checked as such
            case NamespaceEntry() | ClosureVariable() | Code() | Item() | Slot():
                self._watch_identity(place)
            case _:
                raise NotNativeError("what the function reads is found by Python alone")

    def _append(self, fetch: Fetch, what: Any, expected: Any) -> None:
        self.steps.append(Step(fetch, what, Check.IDENTITY, expected))

    def _watch_identity(self, place: Place) -> None:
        now = place()
        expected = ABSENT if now is UNASSIGNED or _has_none(place) else now
        match place:
            case NamespaceEntry(namespace, name):
                if expected is ABSENT or not self.held.hold_entry(namespace, name, now):
                    self.steps.append(Step(Fetch.ENTRY, name, Check.IDENTITY, expected, inside=namespace))
            case Code(function) if function.__defaults__ is None and function.__kwdefaults__ is None:
                self._functions.add(function)
                if not self.held.hold_function(function):
                    self.steps.append(Step(Fetch.FUNCTION, function, Check.ANYTHING, function.__code__))
            case Defaults(function) | KeywordDefaults(function) if function in self._functions:
                pass  # seen with its code
            case _:
                self.add(place, Check.IDENTITY, expected)

    def _watch_keys(self, container: Place) -> None:
        if _has_none(container):
            self._watch_identity(container)
        else:
            number, value = self._container(container), container()
            if isinstance(value, dict):
                self.steps.extend(
                    Step(item_fetch(at, key), key, Check.ANYTHING, None, number) for at, key in enumerate(value)
                )

    def _container(self, place: Place) -> int:
        """The step that fetches a container and checks its kind and length."""
        value = place()
        key = ("contents", id(value)) if isinstance(place, FixedReference) else ("place", id(place))
        known = self._containers.get(key)
        if known is not None:
            return known
        check = next((check for kind, check in _CONTAINERS.items() if isinstance(value, kind)), None)
        if check is None:
            raise NotNativeError(f"a part of a {type(value).__name__} around the function")
        number = self.add(place, check, type(value), length=len(value))
        self._places.append(place)
        self._containers[key] = number
        return number

    def _namespace(self, namespace: dict[str, Any]) -> int:
        """The step that fetches a dict that stays the same, whatever else is in it."""
        key = ("namespace", id(namespace))
        known = self._containers.get(key)
        if known is None:
            self.steps.append(Step(Fetch.CONSTANT, namespace, Check.ANYTHING))
            known = self._containers[key] = len(self.steps) - 1
        return known

    def _fetch(self, place: Place) -> tuple[Fetch, Any, int]:
        match place:
            case NamespaceEntry(namespace, name):
                return Fetch.DICT_ITEM, name, self._namespace(namespace)
            case Slot(instance, name):
                self.steps.append(Step(Fetch.CONSTANT, instance, Check.ANYTHING))
                return Fetch.SLOT, name, len(self.steps) - 1
            case Item(container, key):
                parent = self._container(container)
                return _ITEM_OF[self.steps[parent].check], key, parent
            case FixedReference(what) | ClosureVariable(what) | Code(what) | Defaults(what) | KeywordDefaults(what):
                return _FETCHES[type(place)], what, 0
        raise NotNativeError("what the function reads is found by Python alone")


def _has_none(place: Place) -> bool:
    """True if a function has no defaults at all, where the place gives empty ones."""
    match place:
        case Defaults(function):
            return function.__defaults__ is None
        case KeywordDefaults(function):
            return function.__kwdefaults__ is None
    return False


_FETCHES: dict[type, Fetch] = {
    FixedReference: Fetch.CONSTANT,
    ClosureVariable: Fetch.CELL,
    Code: Fetch.CODE,
    Defaults: Fetch.DEFAULTS,
    KeywordDefaults: Fetch.KEYWORD_DEFAULTS,
}
_CONTAINERS: dict[type, Check] = {tuple: Check.TUPLE, list: Check.LIST, dict: Check.DICT}
_ITEM_OF = {Check.TUPLE: Fetch.TUPLE_ITEM, Check.LIST: Fetch.LIST_ITEM, Check.DICT: Fetch.DICT_ITEM}

#: Steps that fetch a part of a container by its key.
_ITEMS = frozenset(fetch for fetch in Fetch if fetch.name.endswith(("_ITEM", "_ITEM_BY_VALUE")))
