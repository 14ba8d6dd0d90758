"""Joins and stores by basic keys drawn by chance, with their operands as they lie in memory, and what NumPy makes of them."""

from dataclasses import dataclass

import numpy as np
from tests.engine.cuda import nests

from pullback.backends.cuda.kernels.kernel_text import write_together
from pullback.backends.cuda.kernels.phases import Place
from pullback.backends.nests.data_movement import is_moved, moves_of
from pullback.backends.nests.views import views_of
from pullback.core.types import ArrayType
from pullback.ir.graph import Graph, Node, Var
from pullback.rules.indexing import index, scatter
from pullback.rules.joining import concatenate
from pullback.rules.storing import add_at, selected_shape, set_at

_SIZES = (1, 2, 3, 5, 8, 16, 33)


@dataclass(frozen=True)
class Moved:
    """A join or a store: its nests, the pieces of memory, and the array that NumPy gives."""

    node: Node
    moves: list
    roots: list
    arrays: dict
    expected: np.ndarray
    target: Var

    def kernels(self):
        roots = self.roots
        placed = [
            (nest, [Place(roots.index(one.root), one.offset * one.dtype.itemsize) for one in operands])
            for nest, operands in self.moves
        ]
        return write_together(placed)

    def memory(self):
        """Each piece of memory at the end of a page: operands as they are given, the rest garbage."""
        blocks = [nests.scratch(root.type.nbytes) for root in self.roots]
        for root, block in zip(self.roots, blocks, strict=True):
            if root in self.arrays:
                block[: root.type.nbytes] = np.ascontiguousarray(self.arrays[root]).reshape(-1).view(np.uint8)
        return blocks

    def result(self, blocks):
        type_ = self.target.type
        return blocks[self.roots.index(self.target)][: type_.nbytes].view(type_.dtype).reshape(type_.shape)


def random_move(seed, *, is_over=False):
    """The one of a seed; `is_over`: a store into the memory of its array."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.choice(_SIZES, rng.integers(1, 4)))
    dtype = np.dtype(rng.choice(["f4", "f8", "i4", "i8", "?"]))
    primitives = [set_at, set_at, add_at] if is_over else [concatenate, set_at, add_at, scatter]
    primitive = primitives[rng.integers(0, len(primitives))]
    if primitive is add_at and dtype.kind == "b":
        dtype = np.dtype("f4")
    arrays, nodes = {}, []

    def given(own, dtype):
        """A value of this shape: an array, or one that is seen backwards and in part."""
        seen = rng.random() < 0.3
        values = rng.integers(-9, 9, [2 * size + 1 if seen else size for size in own]).astype(dtype)
        var = Var(len(arrays) + len(nodes), ArrayType(values.shape, values.dtype))
        arrays[var] = values
        if not seen:
            return var, values
        key = tuple(slice(2 * size, 0, -2) for size in own)
        view = Var(len(arrays) + len(nodes), ArrayType(tuple(own), values.dtype))
        nodes.append(Node(index, (var,), (("key", key),), (view,), ""))
        return view, values[key]

    if primitive is concatenate:
        axis = int(rng.integers(0, len(shape)))
        several = [
            given([*shape[:axis], int(rng.integers(0, 9)), *shape[axis + 1 :]], dtype)
            for _ in range(rng.integers(2, 5))
        ]
        params = {"axis": axis}
    else:
        key = _key(rng, shape)
        selected = list(selected_shape(shape, (), key))
        selected = [size if rng.random() < 0.8 else 1 for size in selected][int(rng.integers(0, len(selected) + 1)) :]
        if primitive is scatter:
            selected = list(selected_shape(shape, (), key))
        own = dtype if rng.random() < 0.8 or dtype.kind != "f" else np.dtype(rng.choice(["f8", "f4", "?", "i8"]))
        params = {"key": key}
        if primitive is scatter:
            several = [given(selected, own)]
            params |= {"shape": shape, "dtype": dtype}
        else:
            whole = rng.integers(-9, 9, shape).astype(dtype)
            array = Var(0, ArrayType(shape, dtype))
            arrays[array] = whole
            several = [(array, whole), given(selected, own)]
            params |= {"unique": True} if primitive is set_at else {}
    expected = primitive.evaluate(*(values for _, values in several), **params)
    result = Var(1000, ArrayType(expected.shape, expected.dtype))
    node = Node(primitive, tuple(var for var, _ in several), tuple(params.items()), (result,), "")
    if not expected.size or not is_moved(node, is_over=is_over):
        return None
    views = views_of(Graph(tuple(arrays), (), (*nodes, node), (result,)), {})
    moves = moves_of(node, views, is_over=is_over)
    roots = list(dict.fromkeys(one.root for _, operands in moves for one in operands))
    if not moves:
        return None
    return Moved(node, moves, roots, arrays, expected, several[0][0] if is_over else result)


def random_moves(seeds, **how):
    """Those of these seeds."""
    return [found for found in (random_move(seed, **how) for seed in seeds) if found is not None]


def _key(rng, shape):
    parts = []
    for size in shape:
        kind = rng.random()
        if kind < 0.25:
            parts.append(int(rng.integers(-size, size)))
        elif kind < 0.4:
            parts.append(slice(None))
        else:
            low, high = sorted(int(end) for end in rng.integers(0, size + 1, 2))
            step = int(rng.choice([1, 1, 2, 3]))
            parts.append(slice(low, high, step) if rng.random() < 0.7 else slice(high - 1 if high else 0, low, -step))
    if rng.random() < 0.2:
        parts = [*parts[:-1], Ellipsis] if rng.random() < 0.5 else [Ellipsis, *parts[1:]]
    if rng.random() < 0.2:
        parts.insert(int(rng.integers(0, len(parts) + 1)), None)
    return tuple(parts)
