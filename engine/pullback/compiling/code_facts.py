"""What can be read off the code of a function before it runs: the names it loads, assigns and imports."""

import dis
import types
from collections.abc import Iterator

#: Names of functions whose result depends on a file.
READING_FILES = frozenset({"load", "loadtxt", "genfromtxt", "fromfile", "memmap", "open_memmap", "fromregex"})
#: Built-in functions that reach what the names in the code do not tell.
LOOKING_AROUND = frozenset({"globals", "locals", "vars", "eval", "exec", "open", "input", "__import__", "breakpoint"})

_RANDOM = frozenset({"random", "default_rng", "rvs", "random_sample", "RandomState", "Generator"})
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


def globals_read(code: types.CodeType) -> set[str]:
    """Globals that a function and those inside it read; `co_names` would also have the names of attributes."""
    return _names(code, "LOAD_GLOBAL", "LOAD_NAME")


def assigns_globals(code: types.CodeType) -> bool:
    """Whether a global is assigned or deleted."""
    return bool(_names(code, "STORE_GLOBAL", "DELETE_GLOBAL"))


def captured_names_assigned(code: types.CodeType) -> set[str]:
    """Variables of a closure that the function assigns to."""
    return _names(code, "STORE_DEREF", "DELETE_DEREF") & set(code.co_freevars)


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
    return "ndarray" in _names(code, *_ATTRIBUTES, "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "IMPORT_FROM")


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _names(code: types.CodeType, *operations: str) -> set[str]:
    return {step.argval for part in _codes(code) for step in dis.get_instructions(part) if step.opname in operations}
