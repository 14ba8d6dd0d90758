"""Errors at the user's own line: the call or store that cannot take a traced value, and what to write instead.

NumPy, SciPy and Python ask a traced value for a plain array or number from inside their C code. The expression that asked is
the one at which the innermost frame of the user's code stands; its text comes from the positions that CPython keeps with each
instruction (PEP 657).
"""

import ast
import dis
import importlib
import linecache
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from pullback.core.primitive import refused
from pullback.dataclass import dataclass
from pullback.errors import TracingError
from pullback.numpy_api.translations import FUNCTIONS

_LIBRARIES = frozenset({"pullback", "numpy", "scipy"})

#: Namespaces that have NumPy's and SciPy's names for traced values, in the order in which they are asked.
_NAMESPACES = (
    "numpy",
    "numpy.linalg",
    "scipy.special",
    "scipy.linalg",
    "scipy.fft",
    "scipy.signal",
    "scipy.stats",
)

_DRAWS = {
    "normal": "loc + scale * rng.standard_normal(size)",
    "uniform": "low + (high - low) * rng.uniform(size=size)",
    "exponential": "scale * rng.standard_exponential(size)",
    "lognormal": "numpy.exp(mean + sigma * rng.standard_normal(size))",
    "laplace": "loc + scale * rng.laplace(size=size)",
    "logistic": "loc + scale * rng.logistic(size=size)",
    "gumbel": "loc + scale * rng.gumbel(size=size)",
    "multivariate_normal": "mean + rng.standard_normal(len(mean)) @ numpy.linalg.cholesky(cov).T",
}
_REMEDIES = {
    "float": "leave float() out: a traced number is used like a number",
    "float64": "leave numpy.float64() out: a traced number is used like a number",
    "float32": "write x.astype(numpy.float32)",
    "int": "leave int() out, or compute it from arguments that are not differentiated",
    "complex": "leave complex() out, and write a + 1j * b",
    "item": "leave .item() out: an array of one element is used like a number",
    "tolist": "work with the array itself, or with x[0], x[1], …",
    **{name: f"draw numbers that depend on nothing, and compute {form}" for name, form in _DRAWS.items()},
}
_REMEDY = (
    "call it with arguments that are not differentiated, return the value from the function first, or give the function "
    "a derivative with @pb.primitive (docs/custom-rules.md)"
)
_STACK_REMEDY = "an operand is a list or tuple of traced values: numpy.stack(x) makes an array of it"
STORE_REMEDY = (
    "make the array with pb.numpy.zeros, or numpy.zeros_like of a traced value (pb.numpy.zeros_like of any), copy one with "
    "pb.numpy.array, or build it with numpy.stack"
)
#: Instructions of stores: `y[key] = v`, `y.flat = v`.
_STORES = frozenset({"STORE_SUBSCR", "STORE_ATTR"})
#: Methods and functions by which NumPy stores into a plain array without asking a traced value how.
_STORING = frozenset({"fill", "fill_diagonal", "put"})
_READ_REMEDY = (
    "read a plain array at traced positions by numpy.take(a, i), or compute i from arguments that are constant"
)


@dataclass(frozen=True, slots=True)
class CallSite:
    """A place in the user's code: file, line, function, and the expression that is being evaluated, where it is known."""

    file: str
    line: int
    function: str
    expression: str = ""
    instruction: str = ""
    called: Any = None
    """The function that is called, where that could be looked up."""

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}, in {self.function}"
        return f"{place}: `{self.expression}`" if self.expression else place


def refusal(kind: str) -> TracingError:
    """The error for a traced value that should become `kind`, such as "a plain array" or "a float"."""
    site = _call_site()
    where = f"{site}: " if site is not None else ""
    if site is not None and (site.instruction in _STORES or _name_called(site) in _STORING):
        return refused(TracingError(f"{where}a plain array cannot hold a traced value; {STORE_REMEDY}"))
    return TracingError(f"{where}a traced value cannot become {kind}; {_REMEDY if site is None else _remedy_for(site)}")


def located(message: str) -> TracingError:
    """An error with the place in the user's code where it comes up."""
    site = _call_site()
    return TracingError(message if site is None else f"{site}: {message}")


def _call_site() -> CallSite | None:
    """The innermost frame that belongs to none of the libraries."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as `traceback` and `logging` do
    while frame is not None and is_library(frame):
        frame = frame.f_back
    if frame is None:
        return None
    code = frame.f_code
    expression, instruction = _expression_at(frame), dis.opname[code.co_code[frame.f_lasti]]
    called = _called(expression, frame)
    return CallSite(Path(code.co_filename).name, frame.f_lineno, code.co_name, expression, instruction, called)


def is_library(frame: FrameType) -> bool:
    """True if the code that a frame runs is the engine's, NumPy's or SciPy's."""
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _LIBRARIES


def _expression_at(frame: FrameType) -> str:
    """The source of the expression that a frame evaluates, on one line; nothing where there is no source."""
    positions = list(frame.f_code.co_positions())
    place = frame.f_lasti // 2
    first, last, start, end = positions[place] if place < len(positions) else (None,) * 4
    if first is None or last is None or start is None or end is None:
        return ""
    lines = [linecache.getline(frame.f_code.co_filename, line, frame.f_globals) for line in range(first, last + 1)]
    encoded = [line.encode() for line in lines]  # columns count bytes
    encoded[-1] = encoded[-1][:end]
    encoded[0] = encoded[0][start:]
    return " ".join(part.decode(errors="replace").strip() for part in encoded)


def _parsed(expression: str) -> ast.expr | None:
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError:
        return None


def _called(expression: str, frame: FrameType) -> Any:
    """The function of a call, by looking names and attributes up; nothing is evaluated."""
    node = _parsed(expression)
    if not isinstance(node, ast.Call):
        return None
    names = []
    target = node.func
    while isinstance(target, ast.Attribute):
        names.append(target.attr)
        target = target.value
    if not isinstance(target, ast.Name):
        return None
    found = frame.f_locals.get(target.id, frame.f_globals.get(target.id))
    for name in reversed(names):
        try:
            found = getattr(found, name)
        except Exception:  # noqa: BLE001 - a property of the user's; the message does without
            return None
    return found


def _name_called(site: CallSite) -> str:
    """The last name of the function of a call."""
    node = _parsed(site.expression)
    if not isinstance(node, ast.Call):
        return ""
    called = node.func.func if isinstance(node.func, ast.Call) else node.func  # of f(a)(b), f
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _remedy_for(site: CallSite) -> str:
    """The advice for a call: what to write instead."""
    node = _parsed(site.expression)
    if isinstance(node, ast.Subscript):
        return _READ_REMEDY
    if not isinstance(node, ast.Call):
        return _REMEDY
    name = _name_called(site)
    if isinstance(site.called, np.vectorize):
        return "call pb.numpy.vectorize(f)"
    if getattr(math, name, None) is not None and site.called is getattr(math, name):
        return f"call numpy.{name}" if hasattr(np, name) else _REMEDY
    stand_in = _stand_in(name, site.called) or _distribution(name, site.called)
    if stand_in is not None:
        return f"call pb.{stand_in}"
    is_numpys = isinstance(site.called, np.ufunc) or any(function is site.called for function in FUNCTIONS)
    return _STACK_REMEDY if is_numpys else _REMEDIES.get(name, _REMEDY)


def _stand_in(name: str, called: Callable[..., Any] | None) -> str | None:
    """The name of our function for a function of NumPy or SciPy, if there is one of its own."""
    for namespace in _NAMESPACES:
        module = importlib.import_module(f"pullback.{namespace}")
        own = vars(module).get(name)
        if not callable(own) or not str(getattr(own, "__module__", "")).startswith("pullback"):
            continue
        original = getattr(importlib.import_module(namespace), name, None)
        if called is None or called is original:
            return f"{namespace}.{name}"
    return None


def _distribution(name: str, called: Any) -> str | None:
    """The name of our method for one of a distribution of `scipy.stats`."""
    distribution = getattr(getattr(called, "__self__", None), "name", None)
    own = getattr(importlib.import_module("pullback.scipy.stats"), str(distribution), None)
    return f"scipy.stats.{distribution}.{name}" if callable(getattr(own, name, None)) else None
