"""A hash of the sources that a program runs, so that programs of one text with other sources are distinguished.

They are those of the rules that it calls, of what these import, and of what calls a program. Only packages whose functions
run count: passes and emitters show in the text of a program. `tests/engine/compiling/test_program_hashes.py` compares
them with the modules that calls enter.
"""

import functools
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from pullback.core.primitive import Primitive
from pullback.ir.graph import Graph

_ROOT = Path(__file__).parents[2]
_RUN_BY_RULES = ("control", "core", "custom", "nn", "rules")
_RUN_BY_CALLS = (
    *("backends/native/entry", "backends/native/linking", "backends/native/threads", "backends/interpreter.py"),
    *("backends/poison.py", "backends/state.py", "compiling/captured_references.py", "compiling/compiled_graph.py"),
    *("compiling/constancy.py", "compiling/environment.py", "compiling/plan.py", "compiling/signatures.py"),
    *("compiling/specialization.py", "compiling/watched_values.py", "dataclass.py", "devices/__init__.py", "planning"),
)
_RUN_ON_DEVICES = ("backends/cuda", "backends/nests", "devices/cuda")

_IMPORT = re.compile(r"^[ \t]*from (pullback[\w.]*) import (\([^)]*\)|.*)|^[ \t]*import (pullback[\w.]*)", re.MULTILINE)
_NAME = re.compile(r"(\w+)(?: as \w+)?")


def hash_of_sources(graph: Graph, *, calls_rules: bool, is_on_device: bool = False) -> str:
    """A hash that is equal if the files are that the program of a graph runs, and NumPy's version."""
    folders = (*_RUN_BY_CALLS, *(_RUN_ON_DEVICES if is_on_device else ()))
    digests = [f"{folder} {_digest_of_folder(folder)}" for folder in folders]
    if calls_rules:
        modules = {module for primitive in _primitives(graph) for module in _modules_of(primitive)}
        digests += (f"{module} {_digest(module)}" for module in sorted(_with_imports(modules)))
    return hashlib.sha256("\n".join([np.__version__, *digests]).encode()).hexdigest()


def _primitives(graph: Graph) -> Iterator[Primitive]:
    for node in graph.nodes:
        yield node.primitive
        for _, body in node.bodies():
            yield from _primitives(body)


def _modules_of(primitive: Primitive) -> Iterator[str]:
    """The modules of what a primitive calls: of its classes, and of functions that it was given."""
    for part in (*type(primitive).__mro__[:-1], *getattr(primitive, "__dict__", {}).values()):
        function = part.func if isinstance(part, functools.partial) else part
        module = getattr(function, "__module__", None)
        if callable(function) and isinstance(module, str):
            yield module


def _with_imports(modules: Iterable[str]) -> set[str]:
    """Some modules, and the modules of ours that they import, and so on."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _imports(module)
    return found


@functools.cache
def _imports(module: str) -> tuple[str, ...]:
    """The modules that a module of ours imports of the packages whose functions run, read in its text: nothing is loaded for it."""
    path = _file_of(module) if _runs(module) else None
    found: list[str] = []
    for package, names, plain in _IMPORT.findall(path.read_text(encoding="utf-8") if path else ""):
        inside = [f"{package}.{name}" for name in _NAME.findall(re.sub("#.*", "", names))]
        found += [name for name in (plain, package, *inside) if _runs(name) and _file_of(name)]
    return tuple(found)


def _runs(module: str) -> bool:
    return module.startswith(tuple(f"pullback.{package}" for package in _RUN_BY_RULES))


def _file_of(module: str) -> Path | None:
    """The file of a module of ours, whether it is loaded or not."""
    path = _ROOT.joinpath(*module.split("."))
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


@functools.cache
def _digest(module: str) -> str:
    """The hash of a module's file; empty for a module without a file, such as an interactive session."""
    path = _file_of(module) if _runs(module) else getattr(sys.modules.get(module), "__file__", None)
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""
    except OSError:
        return ""


@functools.cache
def _digest_of_folder(folder: str) -> str:
    """The hash of the sources in a folder or of a file, Python and the IR that is loaded, by their place in this package."""
    path = _ROOT / "pullback" / folder
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.suffix in {".py", ".ll"})
    texts = (f"{file.relative_to(path)} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
