"""What can be read off the code of a function before it runs: the names it loads, assigns and imports."""

import dis
import types
from collections.abc import Iterator, Mapping
from functools import lru_cache

#: Names of functions whose result depends on a file.
READING_FILES = frozenset({"load", "loadtxt", "genfromtxt", "fromfile", "memmap", "open_memmap", "fromregex"})
#: Built-in functions that reach what the names in the code do not tell.
LOOKING_AROUND = frozenset({"globals", "locals", "vars", "eval", "exec", "open", "input", "__import__", "breakpoint"})

_RANDOM = frozenset({"random", "default_rng", "rvs", "random_sample", "RandomState", "Generator"})
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_GLOBALS_ASSIGNED = ("STORE_GLOBAL", "DELETE_GLOBAL")
_CAPTURED_ASSIGNED = ("STORE_DEREF", "DELETE_DEREF")
_CATCH = "PUSH_EXC_INFO"
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
    """Whether an error that is raised inside may be the function's own affair (`try`, `with`)."""
    return _CATCH in _steps(code)


def captured_names_assigned(code: types.CodeType) -> set[str]:
    """Variables of a closure that the function assigns to."""
    return _names(code, *_CAPTURED_ASSIGNED) & set(code.co_freevars)


def modules_imported(code: types.CodeType) -> set[str]:
    """Modules imported inside the function."""
    return _names(code, "IMPORT_NAME")


def draws_random_numbers(code: types.CodeType) -> bool:
    """Whether an attribute is read that leads to random numbers."""
    return bool(_names(code, *_ATTRIBUTES, "IMPORT_FROM") & _RANDOM)


def reads_files(code: types.CodeType) -> bool:
    """Whether an attribute is read that leads to the contents of a file."""
    return bool(_names(code, *_ATTRIBUTES, "IMPORT_FROM") & READING_FILES)


def asks_for_ndarray(code: types.CodeType) -> bool:
    """Whether the type of arrays is mentioned: a traced value is not of that type."""
    return "ndarray" in _names(code, *_ATTRIBUTES, *_GLOBALS, "LOAD_DEREF", "IMPORT_FROM")


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
