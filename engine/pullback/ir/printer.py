"""A graph on one page.

    graph(a: f8[3], b: f8[3]):
      c = mul a b                            f8[3]    loss.py:4
      d = sum c {axis=(0,)}                  f8[]     loss.py:4
      e = greater d 0                        b1[]     loss.py:5
      guard e is True
      return d

Graphs among the parameters, the bodies of loops and branches, stand indented below their node.

The text names no memory address and no order of sets, so equal programs print equally: the plan's hash is taken of it.
"""

import hashlib
import re
from collections.abc import Iterator
from itertools import count
from string import ascii_lowercase
from typing import Any

import numpy as np

from pullback.ir.graph import Atom, Graph, Literal, Var
from pullback.ir.types import type_of

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def _names() -> Iterator[str]:
    """Names a, b, …, z, a1, b1, … without end."""
    for round_ in count():
        for letter in ascii_lowercase:
            yield f"{letter}{round_ or ''}"


def format_graph(graph: Graph, *, sources: bool = True) -> str:
    """Text of a graph; without sources it depends on the mathematics alone."""
    return "\n".join(_lines(graph, "graph", sources=sources))


def _lines(graph: Graph, title: str, *, sources: bool) -> Iterator[str]:
    fresh = _names()
    names: dict[Var, str] = {}

    def declare(var: Var) -> str:
        names[var] = next(fresh)
        return names[var]

    def show(atom: Atom) -> str:
        return f"{atom.value!r}" if isinstance(atom, Literal) else names[atom]

    header = ", ".join(f"{declare(var)}: {var.type}" for var in graph.inputs)
    captured = ", ".join(f"{declare(capture.var)}: {capture.var.type}" for capture in graph.captures)
    yield f"{title}({header}{' | ' + captured if captured else ''}):"
    guards = graph.guards_after()

    def shown_guards(position: int) -> Iterator[str]:
        for number in guards.get(position, ()):
            guard = graph.guards[number]
            yield f"  guard {show(guard.atom)} is {guard.seen}"

    yield from shown_guards(-1)
    for position, node in enumerate(graph.nodes):
        operands = " ".join(show(atom) for atom in node.inputs)
        bodies = node.bodies()
        shown = ", ".join(f"{key}={show_param(value)}" for key, value in node.params if not _holds_graphs(value))
        params = f" {{{shown}}}" if shown else ""
        results = ", ".join(declare(var) for var in node.outputs)
        types = ", ".join(str(var.type) for var in node.outputs)
        line = f"  {results} = {node.primitive.name} {operands}{params}"
        yield f"{line:<48} {types:<12} {node.source if sources else ''}".rstrip()
        for name, body in bodies:
            yield from (f"    {line}" for line in _lines(body, name, sources=sources))
        yield from shown_guards(position)
    yield f"  return {', '.join(show(atom) for atom in graph.outputs) or '()'}"


def _holds_graphs(value: Any) -> bool:
    return isinstance(value, Graph) or (isinstance(value, tuple) and any(isinstance(part, Graph) for part in value))


def show_param(value: Any) -> str:
    """A parameter in a form without memory addresses."""
    if isinstance(value, tuple | list):
        inner = ", ".join(map(show_param, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"{type_of(value)}#{digest[:8]}"
    for attribute in ("name", "__qualname__"):
        name = getattr(value, attribute, None)
        if isinstance(name, str):
            return name
    return _ADDRESS.sub("", repr(value))
