"""Parts of arrays: joined where they are written side by side into zeros, and taken from what they were joined of.

    a = scatter u {key=4:6}          c = concatenate v u          cotangents of the parts of one array: no zeros are made
    b = add_at a v {key=0:4}   ->                                 and nothing is added to them

    c = concatenate v u        ->    d = u                        weights that are packed into one array and read as views
    d = index c {key=4:6}

    b = reshape (reshape a)    ->    b = reshape a, or a itself

The values are the same but for the sign of a zero: 0 + -0.0 is 0.0, and what is joined stays -0.0.
"""

from collections import Counter
from dataclasses import replace

from pullback.core.types import Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.loops.form import applied
from pullback.rules.indexing import index, scatter
from pullback.rules.joining import concatenate
from pullback.rules.shapes import reshape
from pullback.rules.storing import add_at
from pullback.simplification.dead_code import drop_dead
from pullback.simplification.rewriting import rewrite


@dataclass(frozen=True, slots=True)
class _Part:
    """A range of one axis, of all that there is along the others."""

    axis: int
    start: int
    stop: int


def join_parts(graph: Graph) -> Graph:
    """Rewrite what is on this page, inside loops and branches too."""
    uses = graph.uses()
    makers: dict[Var, Node] = {}

    def step(node: Node) -> Node | Atom:
        result: Node | Atom = node.with_bodies(join_parts)
        if node.primitive is add_at and len(node.inputs) == 2:
            result = _joined(node, makers, uses) or result
        elif node.primitive is index:
            result = _taken(node, makers) or result
        elif node.primitive is reshape:
            result = _reshaped(node, makers)
        if isinstance(result, Node):
            makers.update((var, result) for var in result.outputs)
        return result

    return drop_dead(rewrite(graph, step))


def _joined(node: Node, makers: dict[Var, Node], uses: Counter[Atom]) -> Node | None:
    """The chain of parts that ends here, as one array, if they fill it and do not overlap."""
    shape = node.outputs[0].type.shape
    parts: list[tuple[_Part, Atom]] = []
    current = node
    while True:
        part = _part(dict(current.params)["key"], shape)
        value = current.inputs[-1]
        if part is None or value.type.dtype != node.outputs[0].type.dtype or value.type.shape != _shape(part, shape):
            return None
        parts.append((part, value))
        if current.primitive is scatter:
            break
        before = current.inputs[0]
        maker = makers.get(before) if isinstance(before, Var) and uses[before] == 1 else None
        if maker is None or maker.primitive not in (add_at, scatter) or len(maker.inputs) > 2:
            return None
        current = maker
    if len({part.axis for part, _ in parts}) > 1:
        return None
    parts.sort(key=lambda pair: pair[0].start)
    ends = [0, *(part.stop for part, _ in parts)]
    if [part.start for part, _ in parts] != ends[:-1] or ends[-1] != shape[parts[0][0].axis]:
        return None
    joined = applied(concatenate, [value for _, value in parts], node.source, axis=parts[0][0].axis)
    return replace(joined, outputs=node.outputs)


def _taken(node: Node, makers: dict[Var, Node]) -> Node | Atom | None:
    """The operand of a concatenation that an index selects, or the index of it."""
    whole = node.inputs[0]
    maker = makers.get(whole) if isinstance(whole, Var) else None
    part = None if maker is None else _part(dict(node.params)["key"], whole.type.shape)
    if maker is None or part is None or maker.primitive is not concatenate or dict(maker.params)["axis"] != part.axis:
        return None
    end = 0
    for operand in maker.inputs:
        start, end = end, end + operand.type.shape[part.axis]
        if (start, end) == (part.start, part.stop) and operand.type == node.outputs[0].type:
            return operand
    return None


def _reshaped(node: Node, makers: dict[Var, Node]) -> Node | Atom:
    operand = node.inputs[0]
    maker = makers.get(operand) if isinstance(operand, Var) else None
    if maker is not None and maker.primitive is reshape:
        operand = maker.inputs[0]
    if operand.type == node.outputs[0].type:
        return operand
    return replace(node, inputs=(operand,))


def _part(key: object, shape: Shape) -> _Part | None:
    """The selection of a key, if that is a range of one axis."""
    keys = key if isinstance(key, tuple) else (key,)
    if not keys or len(keys) > len(shape) or not all(isinstance(each, slice) for each in keys):
        return None
    ranges = [each.indices(size) for each, size in zip(keys, shape, strict=False)]
    cut = [axis for axis, (each, size) in enumerate(zip(ranges, shape, strict=False)) if each != (0, size, 1)]
    if len(cut) != 1 or ranges[cut[0]][2] != 1 or ranges[cut[0]][1] <= ranges[cut[0]][0]:
        return None
    return _Part(cut[0], *ranges[cut[0]][:2])


def _shape(part: _Part, shape: Shape) -> Shape:
    return (*shape[: part.axis], part.stop - part.start, *shape[part.axis + 1 :])
