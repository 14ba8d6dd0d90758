"""Facts about the code of a function that are known before it runs: the names it loads, assigns and imports."""

import dis
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from pullback.dataclass import dataclass

#: Names of functions whose result depends on a file.
READING_FILES = frozenset({"load", "loadtxt", "genfromtxt", "fromfile", "memmap", "open_memmap", "fromregex"})
#: Built-in functions that have effects, or that reach what the names in the code do not tell.
EFFECTIVE = frozenset(
    {"globals", "locals", "vars", "eval", "exec", "open", "print", "input", "__import__", "breakpoint", "id"}
)

_RANDOM = frozenset({"random", "default_rng", "rvs", "random_sample", "samples", "RandomState", "Generator"})
#: Functions that read an attribute by a name that the code need not tell.
_BY_ANY_NAME = frozenset({"getattr", "hasattr", "dir", "attrgetter", "methodcaller", "__dict__", "__getattribute__"})
#: Attributes that give the state of a random generator, or change more of it than the state; the first of any generator.
_RANDOM_STATES = frozenset({"bit_generator", "getstate", "spawn"})
_GLOBAL_RANDOM_STATES = frozenset({"get_state", "get_bit_generator"})
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_GLOBALS_ASSIGNED = ("STORE_GLOBAL", "DELETE_GLOBAL")
_CAPTURED_ASSIGNED = ("STORE_DEREF", "DELETE_DEREF")
_VARIABLES = (*_GLOBALS, "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS")
_CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT")
_CATCH = "PUSH_EXC_INFO"
#: Classes of numbers by the names under which code compares with them; what is equal (`type(x) == float`) asks the class itself,
#: `type(x) in {float}` and `issubclass(type(x), float)` do not.
_NUMBERS: Mapping[object, str] = {
    **{class_.__name__: f"numpy.{class_.__name__}" for class_ in np.sctypeDict.values()},
    **{class_.__name__: class_.__name__ for class_ in (bool, int, float, complex)},
}
_TELLING = frozenset(
    {
        *_ATTRIBUTES,
        *_GLOBALS,
        *_GLOBALS_ASSIGNED,
        *_CAPTURED_ASSIGNED,
        _CATCH,
        "LOAD_DEREF",
        "IMPORT_NAME",
        "IMPORT_FROM",
    }
)


def globals_read(code: types.CodeType) -> set[str]:
    """Globals that a function and those inside it read; `co_names` would also have the names of attributes."""
    return _names(code, *_GLOBALS)


def globals_assigned(code: types.CodeType) -> set[str]:
    """Globals that are assigned or deleted."""
    return _names(code, *_GLOBALS_ASSIGNED)


def catches_errors(code: types.CodeType) -> bool:
    """True if an error that is raised inside may be the function's own affair (`try`, `with`)."""
    return _CATCH in _steps(code)


def captured_names_assigned(code: types.CodeType) -> set[str]:
    """Variables of a closure that the function assigns to."""
    return _names(code, *_CAPTURED_ASSIGNED) & set(code.co_freevars)


def attributes_read(code: types.CodeType) -> set[str]:
    """Names of all attributes that are read."""
    return _names(code, *_ATTRIBUTES, "IMPORT_FROM")


def reads_any_attribute(code: types.CodeType) -> bool:
    """True if attributes may be read whose names are not in the code (`getattr`)."""
    return bool(_names(code, *_ATTRIBUTES, *_GLOBALS) & _BY_ANY_NAME)


def asks_for_types(code: types.CodeType) -> bool:
    """True if the code calls `type(x)`."""
    return "type" in _names(code, *_GLOBALS)


def draws_random_numbers(code: types.CodeType) -> bool:
    """True if an attribute is read that leads to random numbers."""
    return bool(_names(code, *_ATTRIBUTES, "IMPORT_FROM") & _RANDOM)


def reads_random_states(code: types.CodeType) -> str | None:
    """The kind of generator whose state may be read: "any", the "global" one, or None."""
    read = _names(code, *_ATTRIBUTES, *_GLOBALS, "LOAD_DEREF", "IMPORT_FROM")
    return "global" if read & _GLOBAL_RANDOM_STATES else "any" if read & _RANDOM_STATES else None


@lru_cache(maxsize=4096)
def compares_identities(code: types.CodeType) -> bool:
    """True if objects are compared by identity, or searched for among others (`x is y`, `x in y`); not with a constant."""
    for part in _codes(code):
        before = None
        for step in _plain_steps(part):
            if step.opname in ("IS_OP", "CONTAINS_OP") and before != "LOAD_CONST":
                return True
            before = step.opname
    return bool(_names(code, *_ATTRIBUTES) & {"index"})


@lru_cache(maxsize=4096)
def compares_with_truth(code: types.CodeType) -> bool:
    """True if something is compared with the object True or False (`x is True`, `case True`)."""
    for part in _codes(code):
        before = None
        for step in _plain_steps(part):
            if step.opname == "IS_OP" and before in (True, False):
                return True
            before = step.argval if step.opname == "LOAD_CONST" and type(step.argval) is bool else None
    return False


def reads_files(code: types.CodeType) -> bool:
    """True if an attribute is read that leads to the contents of a file."""
    return bool(_names(code, *_ATTRIBUTES, "IMPORT_FROM") & READING_FILES)


@lru_cache(maxsize=4096)
def type_asked_for(code: types.CodeType) -> tuple[str, bool] | None:
    """The class that the type of a value seems to be compared with, which would tell a traced value apart: an array's, a number's.

    With it True if only a number of Python could be of that class: a number of NumPy may be of one derived from `float`.
    """
    if "type" not in _names(code, *_GLOBALS):
        return None
    if "ndarray" in _names(code, *_ATTRIBUTES, *_GLOBALS, "LOAD_DEREF", "IMPORT_FROM"):
        return "numpy.ndarray", False
    for part in _codes(code):
        steps = [step for step in _plain_steps(part) if step.opname != "PRECALL"]
        names = [step.argval if step.opname in (*_ATTRIBUTES, *_VARIABLES) else None for step in steps]
        for place in range(len(steps)):
            if (class_ := _class_compared(steps, names, place)) in _NUMBERS:
                return _NUMBERS[class_], class_ == _NUMBERS[class_]
            if names[place : place + 2] == ["issubclass", "type"] and (name := _number_in_call(steps[place:])):
                return name, False
    return None


def _class_compared(steps: Sequence[dis.Instruction], names: Sequence[object], place: int) -> object:
    """The name before a comparison that asks no class (`is float`, `in {float}`), or that of a constant (`is type(1.0)`)."""
    if steps[place].opname == "CONTAINS_OP" and steps[place - 1].opname == "BUILD_SET":
        return names[place - 2]
    if steps[place].opname != "IS_OP":
        return None
    if names[place - 3] == "type" and steps[place - 2].opname in _CONSTANTS:
        return type(steps[place - 2].argval).__name__
    return names[place - 1]


def _number_in_call(steps: Sequence[dis.Instruction]) -> str | None:
    """The first class of numbers among the arguments of the function that is loaded first, behind one call."""
    calls = 0
    for step in steps:
        calls += step.opname == "CALL"
        if calls == 2:
            break
        if step.opname in (*_ATTRIBUTES, *_VARIABLES) and step.argval in _NUMBERS:
            return _NUMBERS[step.argval]
    return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _names(code: types.CodeType, *operations: str) -> set[str]:
    steps = _steps(code)
    return set().union(*(steps.get(operation, ()) for operation in operations))


@lru_cache(maxsize=4096)
def _steps(code: types.CodeType) -> Mapping[str, set[str]]:
    """The telling operations of a function and those inside it, with the names they are about.

    Kept, because disassembling takes milliseconds, eight facts are asked for of each code, and each program that meets a
    class looks at all methods anew.
    """
    found: dict[str, set[str]] = {}
    for part in _codes(code):
        for step in dis.get_instructions(part):
            if step.opname in _TELLING:
                found.setdefault(step.opname, set()).add(step.argval)
    return found


@dataclass(frozen=True, slots=True)
class Import:
    """An `import` inside a function: of a module, which may be relative to the function's own, and of names in it."""

    module: str
    level: int
    names: tuple[str, ...]


@lru_cache(maxsize=4096)
def imports(code: types.CodeType) -> Sequence[Import]:
    """Imports inside a function and those inside it."""
    found = []
    for part in _codes(code):
        constants: list[object] = []
        for step in _plain_steps(part):
            if step.opname in _CONSTANTS:
                constants.append(step.argval)
            elif step.opname == "IMPORT_NAME":
                level, names = constants[-2:]
                found.append(Import(step.argval, level if isinstance(level, int) else 0, _texts(names)))
    return found


@lru_cache(maxsize=4096)
def chains_read(code: types.CodeType) -> Mapping[str, frozenset[tuple[str, ...]]]:
    """Attribute chains read from captured variables: `m.parts.f(x)` is the chain `("parts", "f")` of the name `m`.

    The empty chain: the value itself is handed on, and may be read by any code.
    """
    found: dict[str, set[tuple[str, ...]]] = {}
    for part in _codes(code):
        name: str | None = None
        chain: list[str] = []
        for step in _plain_steps(part):
            if name is not None and step.opname in _ATTRIBUTES:
                chain.append(step.argval)
                continue
            if name is not None:
                found.setdefault(name, set()).add(tuple(chain))
            name = step.argval if step.opname in _VARIABLES else None
            chain = []
    return {name: frozenset(chains) for name, chains in found.items()}


def _plain_steps(code: types.CodeType) -> Iterator[dis.Instruction]:
    return (step for step in dis.get_instructions(code) if step.opname not in ("EXTENDED_ARG", "CACHE", "PUSH_NULL"))


def _texts(names: object) -> tuple[str, ...]:
    return tuple(str(name) for name in names) if isinstance(names, tuple) else ()
