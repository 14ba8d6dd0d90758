"""Stores that are read again: what was just stored is taken from where it was computed.

    b = set_at a v {key=3}          c = v                      a read of what was stored
    c = index b {key=3}       ->    e = index a {key=2}        a read of something else
    e = index b {key=2}             d = set_at a w {key=3}     a store that is stored over is not made
    d = set_at b w {key=3}

    b = set_at a v {key=0}          c = concatenate v w        an array that stores fill is joined, its parts made in place
    c = set_at b w {key=1}    ->

    b = set_at a v {key=(3, 0)}     u = concatenate v w        and so is a row; what reads it reads one value, not two
    c = set_at b w {key=(3, 1:)} -> c = set_at a u {key=3}

A loop of stores in Python, `u[t + 1] = f(u[t])`, is then its rows, and the array is put together once; and so are its cotangents.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

from pullback.core.types import Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.keys import Place, are_apart, as_range, covers, places_of, within
from pullback.passes.loops.form import applied
from pullback.passes.loops.repetition import FEWEST_STEPS
from pullback.rules.indexing import index
from pullback.rules.joining import concatenate
from pullback.rules.shapes import broadcast_to, reshape
from pullback.rules.storing import STORES, add_at, selected_shape, set_at
from pullback.simplification.dead_code import drop_dead

#: The part of an axis that stores have to fill at least for the array to be joined instead of stored into.
_FILLED = 0.5

_StoredElements: TypeAlias = tuple[tuple[Place, ...], Node]
"""The elements that a store replaces, and the store."""

_Kind: TypeAlias = tuple[Shape, tuple[range | None, ...]]

#: Stores that become one row at most: each store looks back for so many.
_MOST_JOINED = 32


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
    replacements: dict[Atom, Atom] = {}
    nodes: list[Node] = []

    def emit(node: Node) -> None:
        nodes.append(node)
        makers.update((var, node) for var in node.outputs)

    rows = _Rows.of(graph)
    for old in graph.nodes:
        node = old.reading(tuple(replacements.get(atom, atom) for atom in old.inputs)).with_bodies(forward_stores)
        if node.primitive is index:
            for each in _read(node, makers, rows):
                if isinstance(each, Node):
                    emit(each)
                else:
                    replacements[node.outputs[0]] = each
        elif node.primitive is set_at:
            store = _without_stored_over(node, makers)
            for each in _row(store, makers, rows) or [store]:
                emit(each)
        else:
            emit(node)
    return graph.rewritten(nodes, lambda atom: replacements.get(atom, atom))


def _maker_of_store(atom: Atom, makers: dict[Var, Node]) -> Node | None:
    """The store by a basic key that made a value."""
    maker = makers.get(atom) if isinstance(atom, Var) else None
    return maker if maker is not None and maker.primitive in STORES and len(maker.inputs) == 2 else None


def _read(node: Node, makers: dict[Var, Node], rows: "_Rows") -> Sequence[Node | Atom]:
    """A read of an array after stores: of the array before the stores that do not overlap with it, or of a stored value."""
    array = node.inputs[0]
    own = places_of(dict(node.params)["key"], array.type.shape)
    while own is not None and (store := _maker_of_store(array, makers)) is not None:
        theirs = places_of(dict(store.params)["key"], array.type.shape)
        if theirs is None:
            return [node]
        if are_apart(own, theirs):
            array = store.inputs[0]
            continue
        value, result = store.inputs[1], node.outputs[0]
        for places, piece in rows.pieces(store):
            if (part := within(own, places)) is not None:
                return _part_of(piece, piece.type.shape, part, node)
        part = within(own, theirs)
        if store.primitive is add_at or part is None or value.type.dtype != result.type.dtype or value.type.weak:
            break
        return _part_of(value, selected_shape(array.type.shape, (), dict(store.params)["key"]), part, node)
    return [replace(node, inputs=(array,))]


def _part_of(value: Atom, shape: Shape, key: tuple[Any, ...], node: Node) -> Sequence[Node | Atom]:
    """The nodes that read a key from a value that was broadcast to a shape when it was stored."""
    nodes: list[Node | Atom] = []
    if value.type.shape != shape:
        nodes.append(applied(broadcast_to, [value], node.source, shape=shape))
        value = nodes[-1].outputs[0]  # type: ignore[union-attr]  # it was just made
    if all(part == slice(None) for part in key):
        return [*nodes, value]
    return [*nodes, replace(node, inputs=(value,), params=(("key", key),))]


def _without_stored_over(node: Node, makers: dict[Var, Node]) -> Node:
    """A store into the array before stores to places that it stores over."""
    if len(node.inputs) > 2:
        return node
    array = node.inputs[0]
    own = places_of(dict(node.params)["key"], array.type.shape)
    while own is not None and (store := _maker_of_store(array, makers)) is not None:
        theirs = places_of(dict(store.params)["key"], array.type.shape)
        if theirs is None or not covers(own, theirs):
            break
        array = store.inputs[0]
    return replace(node, inputs=(array, node.inputs[1]))


# --- rows that stores fill -------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _JoinedRow:
    """A row that was joined of pieces along an axis, and the array before it."""

    base: Atom
    along: int
    places: tuple[Place, ...]
    pieces: Sequence[tuple[range, Atom]]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Facts about a graph that are needed to join the stores of a row."""

    readers: Mapping[Atom, Sequence[Node | None]]
    """Nodes that read a value; None stands for the caller."""
    often: frozenset[_Kind]
    """The stores of which there are as many as a loop has steps at least."""
    joined: dict[Atom, _JoinedRow] = field(default_factory=dict)
    """The row stored last, by array."""

    @classmethod
    def of(cls, graph: Graph) -> "_Rows":
        readers: dict[Atom, list[Node | None]] = {}
        for node in graph.nodes:
            for atom in node.inputs:
                readers.setdefault(atom, []).append(node)
        for atom in graph.ends():
            readers.setdefault(atom, []).append(None)
        kinds = Counter(_kind(places, node) for node in graph.nodes if (places := _stored_places(node)) is not None)
        return cls(readers, frozenset(kind for kind, count in kinds.items() if count >= FEWEST_STEPS))

    def pieces(self, store: Node) -> Iterator[tuple[tuple[Place, ...], Atom]]:
        """The pieces that a store of a row joined, each with its place."""
        row = self.joined.get(store.outputs[0])
        if row is not None:
            for taken, value in row.pieces:
                yield (*row.places[: row.along], taken, *row.places[row.along + 1 :]), value


def _kind(places: Sequence[Place], node: Node) -> _Kind:
    """The common part of the stores of a loop: the shape of the array, and the ranges."""
    return (node.outputs[0].type.shape, tuple(place if isinstance(place, range) else None for place in places))


def _row(node: Node, makers: dict[Var, Node], rows: _Rows) -> list[Node] | None:
    """The stores that end here as one, where they fill an axis of the array and are only read together.

    In a loop it is enough that they fill most of it: what is left is taken from the array before.
    """
    first, shape = _stored_places(node), node.outputs[0].type.shape
    if first is None:
        return None
    is_cut = [place != range(size) for place, size in zip(first, shape, strict=True)]
    if sum(is_cut) < 2:  # an array that is filled is joined at its last store
        return None
    for along in (axis for axis, cut in enumerate(is_cut) if cut):
        stores = _stored_along(node, along, makers, rows)
        filled = sum(len(as_range(places[along])) for places, _ in stores)
        often = any(isinstance(p[along], range) and _kind(p, store) in rows.often for p, store in stores)
        below = _row_below(along, stores, makers, rows)
        if below is not None or filled == shape[along] or (often and filled > _FILLED * shape[along]):
            return _joined_row(node, along, stores, below, makers, rows)
    return None


def _row_below(
    along: int, stores: Sequence[_StoredElements], makers: dict[Var, Node], rows: _Rows
) -> _JoinedRow | None:
    """The row that stores store into parts of."""
    (places, last), array = stores[-1], stores[-1][1].inputs[0]
    below = rows.joined.get(array)
    if below is None or below.along != along or len(stores) + len(below.pieces) > _MOST_JOINED:
        return None
    same = all(place == below.places[axis] for axis, place in enumerate(places) if axis != along)
    return below if same and isinstance(array, Var) and _is_seen_whole(makers[array], last, makers, rows) else None


def _stored_along(node: Node, along: int, makers: dict[Var, Node], rows: _Rows) -> list[_StoredElements]:
    """The stores up to a store that differ along one axis alone, and what else reads only some of them is something else."""
    stores: list[_StoredElements] = []
    current: Node | None = node
    while current is not None and len(stores) < _MOST_JOINED and (places := _stored_places(current)) is not None:
        if stores:
            others = (axis for axis in range(len(places)) if axis != along)
            same = all(places[axis] == stores[0][0][axis] for axis in others)
            apart = all(are_apart((places[along],), (other[along],)) for other, _ in stores)
            if not (same and apart and _is_seen_whole(current, stores[-1][1], makers, rows)):
                break
        stores.append((places, current))
        current = _maker_of_store(current.inputs[0], makers)
    return stores


def _stored_places(node: Node) -> tuple[Place, ...] | None:
    """The places that a store replaces, if they are ranges in steps of one, by values of the array's dtype."""
    if node.primitive is not set_at or len(node.inputs) != 2:
        return None
    value, array = node.inputs[1].type, node.outputs[0].type
    places = places_of(dict(node.params)["key"], array.shape)
    if places is None or value.dtype != array.dtype or value.weak:
        return None
    return places if all(as_range(place).step == 1 and as_range(place) for place in places) else None


def _is_seen_whole(before: Node, following: Node, makers: dict[Var, Node], rows: _Rows) -> bool:
    """True if a store's result is read by the next store alone, and by reads that can be taken from elsewhere."""
    array = before.outputs[0]
    for reader in rows.readers[array]:
        if reader is None or (reader.primitive is not index and reader.outputs != following.outputs):
            return False
        if reader.primitive is index and any(
            isinstance(m, Node) and array in m.inputs for m in _read(reader, makers, rows)
        ):
            return False
    return True


def _joined_row(
    node: Node,
    along: int,
    stores: Sequence[_StoredElements],
    below: _JoinedRow | None,
    makers: dict[Var, Node],
    rows: _Rows,
) -> list[Node]:
    """The nodes that join the stored parts and the remaining parts of the row or array between them, and store the result."""
    shape, nodes = node.outputs[0].type.shape, list[Node]()
    base = stores[-1][1].inputs[0] if below is None else below.base
    pieces: list[tuple[range, Atom]] = []
    axis = sum(isinstance(place, range) for place in stores[0][0][:along])

    def piece(primitive: Any, *atoms: Atom, **params: Any) -> Atom:
        nodes.append(applied(primitive, atoms, node.source, **params))
        return nodes[-1].outputs[0]

    def key(taken: range) -> tuple[int | slice, ...]:
        own = (taken if other == along else place for other, place in enumerate(stores[0][0]))
        return tuple(place if isinstance(place, int) else slice(place.start, place.stop) for place in own)

    def left(taken: range) -> None:
        if below is None:
            for read_part in _read(applied(index, [base], node.source, key=key(taken)), makers, rows) if taken else ():
                nodes.extend([read_part] if isinstance(read_part, Node) else [])
                value = read_part.outputs[0] if isinstance(read_part, Node) else read_part
            pieces.extend([(taken, value)] if taken else [])
            return
        for own, value in below.pieces:
            part = range(max(own.start, taken.start), min(own.stop, taken.stop))
            if part == own:
                pieces.append((own, value))
            elif part:
                within_own = slice(part.start - own.start, part.stop - own.start)
                pieces.append((part, piece(index, value, key=(*[slice(None)] * axis, within_own))))

    end = 0
    for places, store in sorted(stores, key=lambda each: as_range(each[0][along]).start):
        taken, value = as_range(places[along]), store.inputs[1]
        left(range(end, taken.start))
        selected = selected_shape(shape, (), dict(store.params)["key"])
        own = value if value.type.shape == selected else piece(broadcast_to, value, shape=selected)
        whole = tuple(
            len(as_range(place)) for other, place in enumerate(places) if other == along or isinstance(place, range)
        )
        pieces.append((taken, own if selected == whole else piece(reshape, own, shape=whole)))
        end = taken.stop
    left(range(end, shape[along]))
    row = piece(concatenate, *(value for _, value in pieces), axis=axis)
    params = {**dict(node.params), "key": key(range(shape[along]))}
    store = _without_stored_over(replace(node, inputs=(base, row), params=tuple(sorted(params.items()))), makers)
    rows.joined[node.outputs[0]] = _JoinedRow(store.inputs[0], along, stores[0][0], pieces)
    return [*nodes, store]


# --- arrays that stores fill -----------------------------------------------------------------------------------------
def _joined(graph: Graph) -> Graph:
    """Chains of stores that fill an axis, or most of it, as arrays that are joined."""
    uses = graph.uses()
    makers = {var: node for node in graph.nodes for var in node.outputs}
    inner = {node.inputs[0] for node in graph.nodes if node.primitive is set_at and uses[node.inputs[0]] == 1}
    nodes: list[Node] = []
    for node in graph.nodes:
        is_end = node.primitive is set_at and node.outputs[0] not in inner
        nodes.extend((_as_join(node, makers, inner) if is_end else None) or [node])
    return replace(graph, nodes=tuple(nodes))


def _as_join(node: Node, makers: dict[Var, Node], inner: set[Atom]) -> list[Node] | None:
    shape, dtype = node.outputs[0].type.shape, node.outputs[0].type.dtype
    parts: dict[int, tuple[range, Atom, Node]] = {}
    along: int | None = None
    current: Node | None = node
    base: Atom = node.outputs[0]
    while current is not None and current.primitive is set_at and len(current.inputs) == 2:
        places = places_of(dict(current.params)["key"], shape)
        axes = [
            axis for axis, (place, size) in enumerate(zip(places or (), shape, strict=False)) if place != range(size)
        ]
        if places is None or len(axes) != 1 or (along is not None and axes[0] != along):
            break
        taken = as_range(places[axes[0]])
        overlaps = any(taken.start < other.stop and other.start < taken.stop for other, _, _ in parts.values())
        if (
            not taken
            or taken.step != 1
            or overlaps
            or current.inputs[1].type.dtype != dtype
            or current.inputs[1].type.weak
        ):
            break
        along, base = axes[0], current.inputs[0]
        parts[taken.start] = (taken, current.inputs[1], current)
        current = makers.get(base) if isinstance(base, Var) and base in inner else None
    if along is None or len(parts) < 2 or sum(len(taken) for taken, _, _ in parts.values()) < _FILLED * shape[along]:
        return None
    return _pieces(node, base, along, [parts[start] for start in sorted(parts)])


def _pieces(node: Node, base: Atom, along: int, parts: Sequence[tuple[range, Atom, Node]]) -> list[Node]:
    """The nodes that join the stored parts and the remaining parts of the base between them."""
    shape = node.outputs[0].type.shape
    nodes: list[Node] = []
    pieces: list[Atom] = []

    def piece(primitive: Any, atom: Atom, **params: Any) -> Atom:
        nodes.append(applied(primitive, [atom], node.source, **params))
        return nodes[-1].outputs[0]

    def left(start: int, stop: int) -> None:
        if start < stop:
            pieces.append(piece(index, base, key=(*[slice(None)] * along, slice(start, stop))))

    end = 0
    for taken, value, store in parts:
        left(end, taken.start)
        selected = selected_shape(shape, (), dict(store.params)["key"])
        whole = (*shape[:along], len(taken), *shape[along + 1 :])
        own = value if value.type.shape == selected else piece(broadcast_to, value, shape=selected)
        pieces.append(own if selected == whole else piece(reshape, own, shape=whole))
        end = taken.stop
    left(end, shape[along])
    joined = applied(concatenate, pieces, node.source, axis=along)
    return [*nodes, replace(joined, outputs=node.outputs)]
