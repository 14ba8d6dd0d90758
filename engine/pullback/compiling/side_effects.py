"""Side effects of a function while it is recorded, which a plan would not repeat: print, read a clock or a file, draw, log.

The code tells only what a function may do: a class whose `__init__` draws its first weights may never be made, and a
message below the level of its logger is not written. So where the code makes one suspicious, recording is watched through
`sys.setprofile`, which reports each call, and what was not called is no reason to refuse. Generators of random
numbers, whose method calls cannot be observed, are compared with their former state.
"""

import copy
import importlib
import random
import sys
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from pullback.backends.gc_pause import collecting_later
from pullback.compiling.code_facts import READING_FILES
from pullback.errors import TracingError
from pullback.traces.recorder import Watch

if TYPE_CHECKING:
    from logging import Logger

_ENGINE = str(Path(__file__).parents[1])
_NUMPY = str(Path(np.__file__).parent)

#: Modules whose built-in functions give the same for the same arguments and change nothing else.
_REPEATABLE = frozenset(
    {
        *(
            "builtins",
            "math",
            "cmath",
            "operator",
            "_operator",
            "functools",
            "_functools",
            "itertools",
            "_abc",
            "_thread",
        ),
        *(
            "collections",
            "_collections",
            "_collections_abc",
            "_struct",
            "_bisect",
            "_heapq",
            "_weakref",
            "_codecs",
            "re",
        ),
        *(
            "_sre",
            "_string",
            "_decimal",
            "_statistics",
            "_json",
            "sys",
            "_imp",
            "numpy",
            "scipy",
            "pullback",
            "datetime",
        ),
        *("typing", "_typing", "types", "_contextvars", "copyreg", "decimal", "enum", "string", "weakref"),
    }
)
_EFFECTS = {
    "print": "prints",
    "input": "asks for input",
    "open": "reads or writes a file",
    "eval": "calls eval",
    "exec": "calls exec",
    "globals": "calls globals",
    "locals": "calls locals",
    "vars": "calls vars",
    "breakpoint": "stops for the debugger",
    "id": "asks for the id of an object",
    "__import__": "imports a module whose name is computed",
}
_IN_ANY_MODULE = {"urandom": "draws random numbers", "_getframe": "reads the variables of its callers", "fspath": None}
_CLOCKS = frozenset({"now", "today", "utcnow"})
_DRAWS = (
    "the function draws random numbers, which differ on each call, or seeds their generator; pass them as an argument"
)

Generator: TypeAlias = "np.random.Generator | np.random.RandomState | np.random.BitGenerator | random.Random"


def is_generator(value: object) -> TypeGuard[Generator]:
    """True if a value draws random numbers; `numpy.random` is not imported to know."""
    if isinstance(value, random.Random):
        return True
    known = "numpy.random" in sys.modules
    return known and isinstance(value, np.random.Generator | np.random.RandomState | np.random.BitGenerator)


def is_repeatable(function: types.BuiltinFunctionType) -> bool:
    """True if a built-in function gives the same for the same arguments, and does nothing else."""
    return _why_not(function) is None


def is_logger(value: Any) -> "TypeGuard[Logger]":
    """True if a value is a logger; `logging`, 4 ms, is not imported to know."""
    return "logging" in sys.modules and isinstance(value, _loggers())


def _is_of_loggers(code: types.CodeType, method: str) -> bool:
    return code.co_name == method and "logging" in sys.modules and code is getattr(_loggers(), method).__code__


def _loggers() -> Any:
    return sys.modules["logging"].Logger


class SideEffects(Watch):
    """The side effects that were noticed: the first one a plan would not repeat, code not looked into, loggers used.

    `obstacles` has the reasons why a function cannot be compiled if it runs; `left_out` is the code that has not been
    looked into.
    """

    def __init__(self, obstacles: Mapping[types.CodeType, str], left_out: Collection[types.CodeType]) -> None:
        self.obstacle: str | None = None
        self.loggers: list[Logger] = []
        self.ran: set[types.CodeType] = set()
        # By their ids: the hash of code is made of all it consists of, anew each time.
        self._obstacles = {id(code): obstacle for code, obstacle in obstacles.items()}
        self._left_out = {id(code): code for code in left_out}
        self._importing = 0
        self._outer = sys.getprofile()

    def __call__(self, frame: types.FrameType, event: Any, arg: Any) -> None:
        """Take note of a call; `sys.setprofile` wants this."""
        if self._outer is not None:
            self._outer(frame, event, arg)
        code = frame.f_code
        if code is _IMPORT and event in ("call", "return"):
            self._importing += 1 if event == "call" else -1
        if self._importing or event not in ("call", "c_call"):
            return
        if event == "call":
            reason = self._why_not_python(frame)
        else:
            allowed = (
                _is_of_engine(code.co_filename) or _is_ours(frame) or (arg is id and _is_standard(code.co_filename))
            )
            reason = None if allowed else _why_not(arg)
        if reason is not None:
            self._refuse(f"the function {reason}{_line(frame)}, which a plan would not do again; {_remedy(reason)}")

    def _refuse(self, obstacle: str) -> None:
        if self.obstacle is None:
            self.obstacle = obstacle
            raise TracingError(obstacle)  # before it is done: it will be on the tape

    def _why_not_python(self, frame: types.FrameType) -> str | None:
        code = frame.f_code
        if id(code) in self._left_out:
            self.ran.add(code)
        if id(code) in self._obstacles:
            self._refuse(self._obstacles[id(code)])
        if _is_of_loggers(code, "isEnabledFor") or _is_of_loggers(code, "getEffectiveLevel"):
            self.loggers.append(frame.f_locals["self"])
        if _is_of_loggers(code, "_log"):  # where every enabled message comes by
            level = sys.modules["logging"].getLevelName(frame.f_locals["level"])
            return f"logs at level {level}, for which logger {frame.f_locals['self'].name!r} is enabled"
        if code in _COPYING and is_generator(frame.f_locals["x"]):
            return "copies a random generator, which gives something else once more was drawn"
        if code is importlib.import_module.__code__:
            return _EFFECTS["__import__"]
        if code.co_name in READING_FILES and code.co_filename.startswith(_NUMPY):
            return f"calls numpy.{code.co_name}"
        return None


@contextmanager
def noticing(
    obstacles: Mapping[types.CodeType, str], left_out: Collection[types.CodeType], generators: Sequence[Generator]
) -> Iterator[SideEffects]:
    """Notice what is called inside the block, in this thread. What these generators gave inside they give again afterwards."""
    outer = sys.getprofile()
    if outer is not None and not isinstance(outer, SideEffects):
        raise TracingError("a profiler is active, so calls of the function cannot be traced")
    noticed = SideEffects(obstacles, left_out)
    legacy = np.random.mtrand._rand  # noqa: SLF001 - the one behind numpy.random.normal
    states = [(generator, *_exchanged(generator)) for generator in (*generators, legacy, random)]
    try:
        with collecting_later():  # what others do in gc.callbacks and finalizers is not done by the function
            sys.setprofile(noticed)
            try:
                yield noticed
            finally:
                sys.setprofile(outer)
    finally:
        for generator, state, fresh in states:
            if repr(_state(generator)) != fresh:
                noticed.obstacle = noticed.obstacle or _DRAWS
            _set_state(generator, state)


def _why_not(function: Any) -> str | None:  # noqa: PLR0911 - one for each kind of effect
    """The side effect of a built-in function, if it has one."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(owner, types.ModuleType) or owner is None:
        module = str(getattr(function, "__module__", None) or getattr(owner, "__name__", "builtins"))
        if module in ("builtins", "io", "_io") and name in _EFFECTS:
            return _EFFECTS[name]
        if module == "_warnings":
            return "gives a warning" if name.startswith("warn") else None
        if name in _IN_ANY_MODULE:
            return _IN_ANY_MODULE[name]
        return None if module.partition(".")[0] in _REPEATABLE else f"calls {module}.{name}"
    kind = owner if isinstance(owner, type) else type(owner)
    if issubclass(kind, random.Random):
        return "draws random numbers"
    if kind.__module__ == "datetime" and name in _CLOCKS:
        return f"calls {kind.__name__}.{name}"
    if kind.__module__ == "_io":
        return "reads or writes a file"
    if name == "__subclasses__":
        return "asks for the subclasses of a class"
    return (
        None
        if kind.__module__.partition(".")[0] in _REPEATABLE or _is_written_in_python(kind)
        else f"calls {kind.__name__}.{name}"
    )


def _is_written_in_python(kind: type) -> bool:
    return "__dict__" in vars(kind) or "__slots__" in vars(kind)


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random) or generator is random:
        return generator.getstate()
    return getattr(generator, "bit_generator", getattr(generator, "_bit_generator", generator)).state


def _exchanged(generator: Any) -> tuple[Any, str]:
    """The state of a generator, and the text of the one that it has from now on: a function may seed it to what it was."""
    state = _state(generator)
    if isinstance(generator, random.Random) or generator is random:
        fresh = random.Random()  # noqa: S311 - no secret
    else:
        bits = getattr(generator, "bit_generator", getattr(generator, "_bit_generator", generator))
        fresh = type(bits)()
    _set_state(generator, _state(fresh))
    return state, repr(_state(generator))


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random) or generator is random:
        generator.setstate(state)
    else:
        getattr(generator, "bit_generator", getattr(generator, "_bit_generator", generator)).state = state


def _caller(frame: types.FrameType) -> types.FrameType:
    """The innermost frame that is not of the standard library."""
    while frame.f_back is not None and _is_standard(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


@cache
def _is_of_engine(file: str) -> bool:
    return file.startswith((_ENGINE, _NUMPY))


def _is_ours(frame: types.FrameType) -> bool:
    return _is_of_engine(_caller(frame).f_code.co_filename)


def _line(frame: types.FrameType) -> str:
    """The file and line of the user's code that led here."""
    while frame.f_back is not None and _is_ours(frame):
        frame = _caller(frame).f_back or frame
    frame = _caller(frame)
    return f" ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})"


@cache
def _is_standard(file: str) -> bool:
    return file.startswith(("<frozen", _STANDARD)) and "site-packages" not in file


def _remedy(reason: str) -> str:
    if reason.startswith("logs"):
        return "raise the level of the logger, or log the results of the function"
    if reason.startswith(("prints", "gives")):
        return "do it outside, with the results of the function"
    return "pass its result as an argument"


_STANDARD = str(Path(types.__file__).parent)
_COPYING = (copy.copy.__code__, copy.deepcopy.__code__)
_IMPORT = importlib._bootstrap._find_and_load.__code__  # type: ignore[attr-defined]  # noqa: SLF001 - every import comes by
