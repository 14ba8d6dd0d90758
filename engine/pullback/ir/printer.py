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
from collections.abc import Iterable, Iterator
from itertools import count
from string import ascii_lowercase
from typing import Any

import numpy as np

from pullback.core.types import type_of
from pullback.ir.graph import Atom, Graph, Literal, Var

#: Least and greatest widths of the columns of a graph.
_STATEMENT_WIDTHS = (48, 72)
_TYPES_WIDTHS = (12, 20)

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def _names() -> Iterator[str]:
    """Names a, b, …, z, a1, b1, … without end."""
    for round_ in count():
        for letter in ascii_lowercase:
            yield f"{letter}{round_ or ''}"


def format_graph(graph: Graph, *, sources: bool = True) -> str:
    """Text of a graph; without sources it depends on the mathematics alone."""
    return "\n".join(_lines(graph, "graph", sources=sources))


def input_names(graph: Graph) -> dict[Var, str]:
    """The names under which the inputs of a graph are printed."""
    return dict(zip([*graph.inputs, *(capture.var for capture in graph.captures)], _names(), strict=False))


def value_names(graph: Graph) -> dict[Var, str]:
    """The names under which all values of a graph are printed."""
    values = [
        *graph.inputs,
        *(capture.var for capture in graph.captures),
        *(var for node in graph.nodes for var in node.outputs),
    ]
    return dict(zip(values, _names(), strict=False))


def format_atom(atom: Atom, names: dict[Var, str]) -> str:
    """A value by its name, a number as it is."""
    return _show_number(atom) if isinstance(atom, Literal) else names[atom]


def _lines(graph: Graph, title: str, *, sources: bool) -> Iterator[str]:
    fresh = _names()
    names: dict[Var, str] = {}

    def declare(var: Var) -> str:
        names[var] = next(fresh)
        return names[var]

    def show(atom: Atom) -> str:
        return _show_number(atom) if isinstance(atom, Literal) else names[atom]

    header = ", ".join(f"{declare(var)}: {var.type}" for var in graph.inputs)
    captured = ", ".join(f"{declare(capture.var)}: {capture.var.type}" for capture in graph.captures)
    yield f"{title}({header}{' | ' + captured if captured else ''}):"
    guards = graph.guards_after()

    def shown_guards(position: int) -> Iterator[str]:
        for number in guards.get(position, ()):
            guard = graph.guards[number]
            yield f"  guard {show(guard.atom)} is {guard.seen}"

    yield from shown_guards(-1)
    written = []
    for node in graph.nodes:
        operands = " ".join(show(atom) for atom in node.inputs)
        shown = ", ".join(f"{key}={show_param(value)}" for key, value in node.params if not _holds_graphs(value))
        params = f" {{{shown}}}" if shown else ""
        results = ", ".join(declare(var) for var in node.outputs)
        types = ", ".join(str(var.type) for var in node.outputs)
        written.append(
            (f"  {results} = {node.primitive.name} {operands}{params}", types, node.source if sources else "")
        )
    statement_width = _width((line for line, _, _ in written), *_STATEMENT_WIDTHS)
    types_width = _width((types for _, types, _ in written), *_TYPES_WIDTHS)
    for position, (node, (line, types, source)) in enumerate(zip(graph.nodes, written, strict=True)):
        yield f"{line:<{statement_width}} {types:<{types_width}} {source}".rstrip()
        for name, body in node.bodies():
            yield from (f"    {line}" for line in _lines(body, name, sources=sources))
        yield from shown_guards(position)
    yield f"  return {', '.join(show(atom) for atom in graph.outputs) or '()'}"


def _width(texts: Iterable[str], least: int, most: int) -> int:
    """Room for every text of a column but those that are longer than most: they push their own line only."""
    return max([least, *(len(text) for text in texts if len(text) <= most)])


def _show_number(literal: Literal) -> str:
    """A Python number as it is; one of NumPy's with its dtype, which takes part in promotion."""
    return f"{literal.value!r}" if literal.type.weak else f"{literal.type.dtype.str[1:]}({literal.value})"


def _holds_graphs(value: Any) -> bool:
    return isinstance(value, Graph) or (isinstance(value, tuple) and any(isinstance(part, Graph) for part in value))


def show_param(value: Any) -> str:
    """A parameter in a form without memory addresses."""
    if isinstance(value, tuple | list):
        inner = ", ".join(map(show_param, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, slice):
        ends = ["" if end is None else repr(end) for end in (value.start, value.stop)]
        return ":".join(ends) + ("" if value.step is None else f":{value.step!r}")
    if value is Ellipsis:
        return "..."
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"{type_of(value)}#{digest[:8]}"
    for attribute in ("name", "__qualname__"):
        name = getattr(value, attribute, None)
        if isinstance(name, str):
            return name
    return _ADDRESS.sub("", repr(value))
