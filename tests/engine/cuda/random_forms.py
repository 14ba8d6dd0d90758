"""Pooling and triangles drawn by chance, as the nests that programs on a device have, and what the rules make of them."""

import math
from dataclasses import dataclass
from itertools import count

import numpy as np
from tests.engine.cuda import nests

from pullback.backends.cuda.elementwise_forms import has_form, write_form
from pullback.backends.cuda.kernels.kernel_text import write_kernels
from pullback.backends.cuda.kernels.phases import Place
from pullback.backends.nests.fusion import FusedNodes, fuse, kept_values
from pullback.backends.nests.merging import merged
from pullback.backends.nests.nest_building import nest_of
from pullback.core.types import ArrayType
from pullback.ir.checker import check_graph
from pullback.ir.graph import Capture, Graph, Node, Var
from pullback.rules.diagonals import lower, upper
from pullback.rules.pooling import max_pool, max_select, max_spread, mean_pool, mean_spread

TWO = {"window": (2, 2), "stride": (2, 2), "pad": ((0, 0), (0, 0))}
THREE = {"window": (3, 3), "stride": (2, 2), "pad": ((1, 1), (1, 1))}
NINE = {"window": (9, 9), "stride": (1, 1), "pad": ((4, 4), (4, 4))}
SEVEN = {"window": (7, 7), "stride": (1, 1), "pad": ((3, 3), (3, 3))}

_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40)


@dataclass(frozen=True)
class Form:
    """A node, the nests that it becomes, and what the rule makes of its operands."""

    name: str
    node: Node
    subjects: list
    roots: list
    arrays: dict
    expected: np.ndarray

    def kernels(self):
        return [write_kernels(subject.nest, subject.places) for subject in self.subjects]

    def memory(self):
        """Each piece of memory at the end of a page: operands as they are given, the rest garbage."""
        blocks = [nests.scratch(root.type.nbytes) for root in self.roots]
        for root, block in zip(self.roots, blocks, strict=True):
            if root in self.arrays:
                block[: root.type.nbytes] = np.ascontiguousarray(self.arrays[root]).reshape(-1).view(np.uint8)
        return blocks

    def result(self, blocks):
        (result,) = self.node.outputs
        block = blocks[self.roots.index(result)][: result.type.nbytes]
        return block.view(result.type.dtype).reshape(result.type.shape)


def form_of(primitive, *operands, **params):
    """A node of these operands and parameters, written out; operands may be types."""
    given = [Var(number, ArrayType(x.shape, x.dtype)) for number, x in enumerate(operands)]
    (type_,) = primitive.infer(*(var.type for var in given), **params)
    numbers, nodes, constants = count(len(given)), [], {}
    result = Var(next(numbers), type_)
    node = Node(primitive, tuple(given), tuple(params.items()), (result,), "")
    assert has_form(node)

    def made(primitive, inputs, source, *, output=None, **params):
        (type_,) = primitive.infer(*(atom.type for atom in inputs), **params)
        var = output or Var(next(numbers), type_)
        nodes.append(Node(primitive, inputs, tuple(params.items()), (var,), source))
        return var

    def constant(value):
        var = Var(next(numbers), ArrayType(value.shape, value.dtype))
        constants[var] = value
        return var

    write_form(node, made, constant)
    captures = tuple(Capture(var, value) for var, value in constants.items())
    graph = Graph(tuple(given), captures, tuple(nodes), (result,), ())
    check_graph(graph)
    found = merged(fuse(graph, belongs=lambda _: True))
    kept, laid = kept_values(found, graph), []
    for kernel in found.kernels:
        assert isinstance(kernel, FusedNodes)
        laid.append(nest_of(kernel, found.views, kept))
    roots = list(dict.fromkeys(access.root for _, operands in laid for access in operands))
    subjects = [
        nests.Subject(
            f"{primitive.name} {place}",
            nest,
            tuple(Place(roots.index(one.root), one.offset * one.dtype.itemsize) for one in operands),
            tuple(max(root.type.nbytes, 1) for root in roots),
        )
        for place, (nest, operands) in enumerate(laid)
    ]
    arrays, expected = dict(zip(given, operands, strict=True)) | constants, None
    if all(isinstance(x, np.ndarray) for x in operands):
        with np.errstate(all="ignore"):
            expected = primitive.evaluate(*operands, **params)
    return Form(f"{primitive.name} {params}", node, subjects, roots, arrays, expected)


def of_types(primitive, shape, dtype, params):
    """A form of pooling of an array of this shape."""
    x = ArrayType(shape, np.dtype(dtype))
    (y,) = max_pool.infer(x, **params)
    if primitive is mean_spread:
        return form_of(primitive, y, size=shape[2:], **params)
    given = {max_select: (x, x, y), max_spread: (y, x, y)}.get(primitive, (x,))
    return form_of(primitive, *given, **params)


def random_form(seed):
    """The form of a seed, of numbers among which are ties, infinities and NaN."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(rng.choice(["f4", "f8"]))
    if seed % 4 == 0:
        shape = tuple(int(size) for size in rng.choice([1, 2, 3, 5, 8, 33], rng.integers(2, 5)))
        k = int(rng.integers(-shape[-2] - 2, shape[-1] + 3))
        return form_of([lower, upper][seed // 4 % 2], _drawn(rng, shape, dtype), k=k)
    params = _pooling(rng)
    size = params.pop("size")
    x = _drawn(rng, (*(int(one) for one in rng.integers(1, 4, 2)), *size), dtype)
    primitive = [mean_pool, mean_spread, max_pool, max_select, max_spread][rng.integers(0, 5)]
    if primitive in (mean_pool, max_pool):
        return form_of(primitive, x, **params)
    with np.errstate(all="ignore"):
        y = max_pool.evaluate(x, **params)
    if primitive is mean_spread:
        return form_of(primitive, _drawn(rng, y.shape, dtype), size=size, **params)
    return form_of(primitive, _drawn(rng, (x if primitive is max_select else y).shape, dtype), x, y, **params)


def _pooling(rng):
    """Windows of one to three axes, near each other, side by side or apart, with padding or without."""
    axes = int(rng.integers(1, 4))
    most = (40, 6, 3)[axes - 1]
    longest = (90, 10, 5)[axes - 1] if rng.random() < 0.25 else min(most, 5)  # of more than 64 elements, some
    window = tuple(int(one) for one in rng.integers(1, longest + 1, axes))
    stride = window if rng.random() < 0.3 else tuple(int(one) for one in rng.integers(1, 5, axes))
    pad = tuple(
        tuple(int(one) for one in rng.integers(0, length, 2)) if rng.random() < 0.5 else (0, 0) for length in window
    )
    size = tuple(
        max(length - low - high, 1) + int(rng.integers(0, most))
        for length, (low, high) in zip(window, pad, strict=True)
    )
    return {"window": window, "stride": stride, "pad": pad, "size": size}


def _drawn(rng, shape, dtype):
    """Numbers of which some are equal and few are special."""
    x = rng.integers(-3, 4, size=shape) / 3 if rng.random() < 0.6 else rng.normal(size=shape)
    for value in _SPECIAL if rng.random() < 0.5 else ():
        x.flat[rng.integers(0, math.prod(shape))] = value
    return x.astype(dtype)
