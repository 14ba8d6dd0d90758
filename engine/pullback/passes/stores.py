"""Stores that are read again: what was just stored is taken from where it was computed.

    b = set_at a v {key=3}          c = v                      a read of what was stored
    c = index b {key=3}       ->    e = index a {key=2}        a read of something else
    e = index b {key=2}             d = set_at a w {key=3}     a store that is stored over is not made
    d = set_at b w {key=3}

    b = set_at a v {key=0}          c = concatenate v w        an array that stores fill is joined, its parts made in place
    c = set_at b w {key=1}    ->

A loop of stores in Python, `u[t + 1] = f(u[t])`, is then its rows, and the array is put together once; and so are its cotangents.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.ir.types import Shape
from pullback.passes.dead_code import drop_dead
from pullback.passes.loops.form import applied
from pullback.rules.indexing import index
from pullback.rules.joining import concatenate
from pullback.rules.shapes import broadcast_to, reshape
from pullback.rules.storing import STORES, add_at, selected_shape, set_at

#: Of an axis, the part that stores have to fill at least for the array to be joined instead of stored into.
_FILLED = 0.5

#: A place along an axis: a number, which takes the axis away, or a range.
_Place = int | range


def forward_stores(graph: Graph) -> Graph:
    """Rewrite what is on this page, inside loops and branches too."""
    if not _has_stores(graph) or any(node.primitive.effect.writes for node in graph.nodes):
        return graph
    graph = drop_dead(_forwarded(graph))
    return drop_dead(_joined(graph)) if any(node.primitive is set_at for node in graph.nodes) else graph


def _has_stores(graph: Graph) -> bool:
    return any(node.primitive in STORES or any(map(_has_stores, dict(node.bodies()).values())) for node in graph.nodes)


def _forwarded(graph: Graph) -> Graph:
    makers: dict[Var, Node] = {}
    known: dict[Atom, Atom] = {}
    nodes: list[Node] = []

    def emit(node: Node) -> None:
        nodes.append(node)
        makers.update((var, node) for var in node.outputs)

    for old in graph.nodes:
        node = replace(old, inputs=tuple(known.get(atom, atom) for atom in old.inputs)).with_bodies(forward_stores)
        if node.primitive is index:
            for made in _read(node, makers):
                if isinstance(made, Node):
                    emit(made)
                else:
                    known[node.outputs[0]] = made
        elif node.primitive is set_at:
            emit(_without_stored_over(node, makers))
        else:
            emit(node)
    guards = tuple(replace(guard, atom=known.get(guard.atom, guard.atom)) for guard in graph.guards)
    return replace(
        graph, nodes=tuple(nodes), outputs=tuple(known.get(atom, atom) for atom in graph.outputs), guards=guards
    )


def _maker_of_store(atom: Atom, makers: dict[Var, Node]) -> Node | None:
    """The store by a basic key that made a value."""
    maker = makers.get(atom) if isinstance(atom, Var) else None
    return maker if maker is not None and maker.primitive in STORES and len(maker.inputs) == 2 else None


def _read(node: Node, makers: dict[Var, Node]) -> Sequence[Node | Atom]:
    """A read of an array after stores, of the array before those that it does not see, or of what was stored."""
    array = node.inputs[0]
    own = _places(dict(node.params)["key"], array.type.shape)
    while own is not None and (store := _maker_of_store(array, makers)) is not None:
        theirs = _places(dict(store.params)["key"], array.type.shape)
        if theirs is None:
            return [node]
        if _are_apart(own, theirs):
            array = store.inputs[0]
            continue
        value, result = store.inputs[1], node.outputs[0]
        within = _within(own, theirs)
        if store.primitive is add_at or within is None or value.type.dtype != result.type.dtype or value.type.weak:
            return [node]  # of the latest array: the store behind an older one would have to copy it
        return _part_of(value, selected_shape(array.type.shape, (), dict(store.params)["key"]), within, node)
    return [replace(node, inputs=(array,))]


def _part_of(value: Atom, shape: Shape, within: tuple[Any, ...], node: Node) -> Sequence[Node | Atom]:
    """What a key reads of a value that was broadcast to a shape when it was stored."""
    made: list[Node | Atom] = []
    if value.type.shape != shape:
        made.append(applied(broadcast_to, [value], node.source, shape=shape))
        value = made[-1].outputs[0]  # type: ignore[union-attr]  # it was just made
    if all(part == slice(None) for part in within):
        return [*made, value]
    return [*made, replace(node, inputs=(value,), params=(("key", within),))]


def _without_stored_over(node: Node, makers: dict[Var, Node]) -> Node:
    """A store into the array before stores to places that it stores over."""
    if len(node.inputs) > 2:
        return node
    array = node.inputs[0]
    own = _places(dict(node.params)["key"], array.type.shape)
    while own is not None and (store := _maker_of_store(array, makers)) is not None:
        theirs = _places(dict(store.params)["key"], array.type.shape)
        if theirs is None or not _covers(own, theirs):
            break
        array = store.inputs[0]
    return replace(node, inputs=(array, node.inputs[1]))


# --- keys ------------------------------------------------------------------------------------------------------------
def _places(key: Any, shape: Shape) -> tuple[_Place, ...] | None:
    """What a basic key takes along each axis; None of one with new axes, or with an ellipsis."""
    parts = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(part, slice) or type(part) is int for part in parts) or len(parts) > len(shape):
        return None
    return _known_places(tuple((p.start, p.stop, p.step) if isinstance(p, slice) else p for p in parts), shape)


@lru_cache(maxsize=4096)
def _known_places(parts: tuple[Any, ...], shape: Shape) -> tuple[_Place, ...]:
    places: list[_Place] = [
        part % size if isinstance(part, int) else range(*slice(*part).indices(size))
        for part, size in zip(parts, shape, strict=False)
    ]
    return (*places, *(range(size) for size in shape[len(parts) :]))


def _as_range(place: _Place) -> range:
    return range(place, place + 1) if isinstance(place, int) else place


def _are_apart(own: tuple[_Place, ...], theirs: tuple[_Place, ...]) -> bool:
    """Whether no element is in both."""
    for one, other in zip(own, theirs, strict=True):
        if isinstance(one, int) and isinstance(other, int):
            if one != other:
                return True
            continue
        a, b = _as_range(one), _as_range(other)
        if not a or not b:
            return True
        if max(min(a[0], a[-1]), min(b[0], b[-1])) > min(max(a[0], a[-1]), max(b[0], b[-1])):
            return True
        if abs(a.step) == abs(b.step) and (a[0] - b[0]) % a.step:
            return True
    return False


def _covers(own: tuple[_Place, ...], theirs: tuple[_Place, ...]) -> bool:
    return all(_is_in(_as_range(other), _as_range(one)) for one, other in zip(own, theirs, strict=True))


def _is_in(inner: range, outer: range) -> bool:
    if not inner:
        return True
    return inner[0] in outer and inner[-1] in outer and (len(inner) == 1 or inner.step % outer.step == 0)


def _within(own: tuple[_Place, ...], theirs: tuple[_Place, ...]) -> tuple[Any, ...] | None:
    """The key that reads places out of what a store to more places stored; None where they are not among them."""
    key: list[Any] = []
    for one, other in zip(own, theirs, strict=True):
        if not _is_in(_as_range(one), _as_range(other)) or (isinstance(other, int) and not isinstance(one, int)):
            return None
        if isinstance(other, int):
            continue
        if isinstance(one, int):
            key.append(other.index(one))
        elif one == other:
            key.append(slice(None))
        elif not one:
            return None
        else:
            start = other.index(one[0])
            step = one.step // other.step if len(one) > 1 else 1
            stop = start + step * len(one)
            key.append(slice(start, stop if stop >= 0 else None, step))
    return tuple(key)


# --- arrays that stores fill -----------------------------------------------------------------------------------------
def _joined(graph: Graph) -> Graph:
    """Chains of stores that fill an axis, or most of it, as arrays that are joined."""
    uses = Counter(atom for node in graph.nodes for atom in node.inputs)
    uses.update(graph.outputs)
    uses.update(guard.atom for guard in graph.guards)
    makers = {var: node for node in graph.nodes for var in node.outputs}
    inner = {node.inputs[0] for node in graph.nodes if node.primitive is set_at and uses[node.inputs[0]] == 1}
    nodes: list[Node] = []
    for node in graph.nodes:
        is_end = node.primitive is set_at and node.outputs[0] not in inner
        nodes.extend((_as_join(node, makers, inner) if is_end else None) or [node])
    return replace(graph, nodes=tuple(nodes))


def _as_join(node: Node, makers: dict[Var, Node], inner: set[Atom]) -> list[Node] | None:
    shape, dtype = node.outputs[0].type.shape, node.outputs[0].type.dtype
    found: dict[int, tuple[range, Atom, Node]] = {}
    along: int | None = None
    current: Node | None = node
    base: Atom = node.outputs[0]
    while current is not None and current.primitive is set_at and len(current.inputs) == 2:
        places = _places(dict(current.params)["key"], shape)
        axes = [
            axis for axis, (place, size) in enumerate(zip(places or (), shape, strict=False)) if place != range(size)
        ]
        if places is None or len(axes) != 1 or (along is not None and axes[0] != along):
            break
        taken = _as_range(places[axes[0]])
        overlaps = any(taken.start < other.stop and other.start < taken.stop for other, _, _ in found.values())
        if (
            not taken
            or taken.step != 1
            or overlaps
            or current.inputs[1].type.dtype != dtype
            or current.inputs[1].type.weak
        ):
            break
        along, base = axes[0], current.inputs[0]
        found[taken.start] = (taken, current.inputs[1], current)
        current = makers.get(base) if isinstance(base, Var) and base in inner else None
    if along is None or len(found) < 2 or sum(len(taken) for taken, _, _ in found.values()) < _FILLED * shape[along]:
        return None
    return _pieces(node, base, along, [found[start] for start in sorted(found)])


def _pieces(node: Node, base: Atom, along: int, found: Sequence[tuple[range, Atom, Node]]) -> list[Node]:
    """The nodes that join what was stored, with what is left of the base between."""
    shape = node.outputs[0].type.shape
    made: list[Node] = []
    pieces: list[Atom] = []

    def piece(primitive: Any, atom: Atom, **params: Any) -> Atom:
        made.append(applied(primitive, [atom], node.source, **params))
        return made[-1].outputs[0]

    def left(start: int, stop: int) -> None:
        if start < stop:
            pieces.append(piece(index, base, key=(*[slice(None)] * along, slice(start, stop))))

    end = 0
    for taken, value, store in found:
        left(end, taken.start)
        selected = selected_shape(shape, (), dict(store.params)["key"])
        whole = (*shape[:along], len(taken), *shape[along + 1 :])
        own = value if value.type.shape == selected else piece(broadcast_to, value, shape=selected)
        pieces.append(own if selected == whole else piece(reshape, own, shape=whole))
        end = taken.stop
    left(end, shape[along])
    joined = applied(concatenate, pieces, node.source, axis=along)
    return [*made, replace(joined, outputs=node.outputs)]
