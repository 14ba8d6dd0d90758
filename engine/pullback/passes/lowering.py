"""Lowering of fused rules to the primitives they stand for, where every array has to be one of the plan's.

A rule that NumPy evaluates in several steps allocates intermediate arrays. Written out as those steps, each with memory
of the plan's, it allocates nothing; liveness puts them into one buffer where the rule would have done so by hand. The
values are the same to the last bit: they are the same NumPy calls in the same order. A rule that cannot be lowered (it
needs values, or calls functions other than NumPy's) is kept, and the summary lists it among those that allocate.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.core.kinds import Scalar
from pullback.core.pieces import Pieces
from pullback.core.primitive import Primitive, tracing
from pullback.errors import PullbackError
from pullback.ir.graph import Atom, Capture, Graph, Literal, Node, Var, with_guards_of, with_guards_returned
from pullback.traces.recorder import GraphTracer, Recorder

Form = Callable[..., Any] | None
"""The function that computes a rule in other primitives; None for a rule that has no such form."""


class _Lowering(Recorder):
    """A recorder that writes out rules as primitives."""

    def __init__(self, form_of: Callable[[Primitive], Form]) -> None:
        super().__init__()
        self._form_of = form_of
        self._inside: list[Primitive] = []

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        form = self._form_of(primitive)
        if form is None or primitive in self._inside:
            return super().apply(primitive, operands, params)
        wanted = primitive.infer(*(self.atom_of(operand).type for operand in operands), **params)
        position = len(self.nodes)
        self._inside.append(primitive)
        try:
            result = form(*operands, **params)
            results = result if primitive.results > 1 else (result,)
            if tuple(self.atom_of(value).type for value in results) == wanted:
                return result
        except (PullbackError, TypeError, ValueError):
            pass
        finally:
            self._inside.pop()
        del self.nodes[position:]
        self.refused = None
        return super().apply(primitive, operands, params)


def lower(graph: Graph) -> Graph:
    """Write out every rule that can be, inside loops and branches too."""
    lowered = written_out(graph, _lower_form)
    if not any(node.bodies() for node in lowered.nodes):
        return lowered
    return replace(lowered, nodes=tuple(node.with_bodies(_lower_inside) for node in lowered.nodes))


def _lower_inside(body: Graph) -> Graph:
    return inside(body, lower(body))


def inside(body: Graph, written: Graph) -> Graph:
    """A body as it is written out, with its numbers where they are read; as it was where there are arrays, of which it has none."""
    if any(capture.var.type.shape for capture in written.captures):
        return body
    numbers = {capture.var: Literal(np.asarray(capture.value)[()], capture.var.type) for capture in written.captures}

    def current(atom: Atom) -> Atom:
        return numbers.get(atom, atom) if isinstance(atom, Var) else atom

    nodes = tuple(replace(node, inputs=tuple(map(current, node.inputs))) for node in written.nodes)
    return replace(written, captures=(), nodes=nodes, outputs=tuple(map(current, written.outputs)))


def written_out(graph: Graph, form_of: Callable[[Primitive], Form]) -> Graph:
    """Write out every rule that has a form."""
    if not any(form_of(node.primitive) for node in graph.nodes):
        return graph
    whole = with_guards_returned(graph)
    with tracing(_Lowering(form_of)) as recorder:
        inputs = tuple(recorder.new_var(var.type) for var in whole.inputs)
        captures = tuple(Capture(recorder.new_var(capture.var.type), capture.value) for capture in whole.captures)
        values: dict[Any, Any] = {
            old: GraphTracer(recorder, new) for old, new in zip(whole.inputs, inputs, strict=True)
        }
        values.update(
            (old.var, GraphTracer(recorder, new.var)) for old, new in zip(whole.captures, captures, strict=True)
        )
        for node in whole.nodes:
            _copy(node, values, recorder)
        outputs = tuple(atom if isinstance(atom, Literal) else recorder.atom_of(values[atom]) for atom in whole.outputs)
    lowered = Graph(inputs, captures + tuple(recorder.captures), tuple(recorder.nodes), outputs)
    return with_guards_of(lowered, graph)


def _copy(node: Node, values: dict[Any, Any], recorder: _Lowering) -> None:
    recorder.source = node.source
    operands = [atom.value if isinstance(atom, Literal) else values[atom] for atom in node.inputs]
    result = recorder.apply(node.primitive, operands, dict(node.params))
    values.update(zip(node.outputs, result if node.primitive.results > 1 else (result,), strict=True))


def _lower_form(primitive: Primitive) -> Form:
    if primitive.lower is not None:
        return primitive.lower
    if not isinstance(primitive, Scalar) or isinstance(primitive.ufunc, np.ufunc):
        return None
    return primitive.ufunc.expression if isinstance(primitive.ufunc, Pieces) else primitive.ufunc
