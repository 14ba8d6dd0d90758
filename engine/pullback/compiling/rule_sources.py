"""A hash of the sources of the rules that a graph calls, so that programs with other rules are distinguished."""

import functools
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pullback.core.primitive import Primitive
from pullback.ir.graph import Graph


def hash_of_rules(graph: Graph) -> str:
    """A hash that is equal if the files that define a graph's rules are, and NumPy's version."""
    modules = {module for primitive in _primitives(graph) for module in _modules_of(primitive)}
    digests = (f"{module} {_digest(module)}" for module in sorted(modules))
    return hashlib.sha256("\n".join([np.__version__, *digests]).encode()).hexdigest()


def _primitives(graph: Graph) -> Iterator[Primitive]:
    for node in graph.nodes:
        yield node.primitive
        for _, body in node.bodies():
            yield from _primitives(body)


def _modules_of(primitive: Primitive) -> Iterator[str]:
    """The modules of what a primitive calls: of its method, and of functions that it was given."""
    for part in (primitive.evaluate, *getattr(primitive, "__dict__", {}).values()):
        module = getattr(part, "__module__", None)
        if callable(part) and isinstance(module, str):
            yield module


@functools.cache
def _digest(module: str) -> str:
    """The hash of a module's file; empty for a module without a file, such as an interactive session."""
    path = getattr(sys.modules.get(module), "__file__", None)
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""
    except OSError:
        return ""
