"""Emitters of nodes: a table by primitive, and the program that kernels are emitted into.

A kernel emitter declares what it supports and how much scratch memory it needs, and writes the call of a function of
its own:

    @emits(matmul, supports=..., scratch=...)
    def emit_matmul(emission, node, site):
        def build(function, pointers): ...
        emission.kernel(("matmul", m, n, k), [site.operands[0].pointer, ...], build)

Kernels of one key share one function, so the key must hold everything the text depends on.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.llvm_module import DeferredKernel, Module, Use
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Graph, Node
from pullback.ir.strides import contiguous_strides


@dataclass(frozen=True, slots=True)
class StoredArray:
    """A value in memory: where its first element is, and how far apart elements are along each axis, in elements."""

    pointer: str
    shape: Shape
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def in_order(cls, pointer: str, type_: ArrayType) -> "StoredArray":
        """A value in C order."""
        return cls(pointer, type_.shape, contiguous_strides(type_.shape), type_.dtype)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """True if elements follow each other in C order."""
        return self.strides == contiguous_strides(self.shape) or self.size <= 1

    @property
    def layout(self) -> tuple[Hashable, ...]:
        """The shape, strides and dtype, for keys of kernels."""
        return (self.shape, self.strides, self.dtype.str)


Build: TypeAlias = Callable[[Function, Sequence[str]], None]


@dataclass(slots=True)
class Emission:
    """A program being emitted: the module, and the function that calls its kernels."""

    module: Module
    function: Function

    @property
    def vector_bits(self) -> int:
        """The width of a register of the machine."""
        return self.module.vector_bits

    def lanes_of(self, dtype: np.dtype[Any]) -> int:
        """The number of elements of a dtype that a register holds."""
        return max(1, self.vector_bits // (8 * dtype.itemsize))

    def kernel(
        self,
        key: Hashable,
        name: str,
        pointers: Sequence[str],
        build: Build,
        indices: Sequence[Index] = (),
        *,
        can_fail: bool = False,
    ) -> None:
        """Call the kernel of a key; `build(function, arguments)` writes it for the first call.

        Its arguments are the pointers, then the indices: i64 numbers that are not known before it runs. One that `can_fail`
        gives something else than 0 where these values are not for native code, and the program ends there.
        """
        function = self.module.kernels.get(key)
        if function is None:
            parameters = [("ptr", f"p{k}") for k in range(len(pointers))]
            parameters += [("i64", f"i{k}") for k in range(len(indices))]
            function = self.module.kernels[key] = self.module.function(
                name, parameters, returns="i64" if can_fail else "void"
            )
            own = [f"%{parameter}" for _, parameter in parameters]
            build(function, own)
            if can_fail:
                function.give(0)
        arguments: list[tuple[str, Index]] = [("ptr", pointer) for pointer in pointers]
        arguments += [("i64", index) for index in indices]
        if can_fail:
            self.attempt(function.name, *arguments)
        else:
            self.function.call("void", f"@{function.name}", *arguments)

    def kernel_later(self, key: Hashable, name: str, pointers: Sequence[str], build: Build, uses: Counter[Use]) -> None:
        """The same for a kernel that is written when all its calls are known, and all `uses` of elementary functions."""
        later = self.module.later.get(key)
        if later is None:
            later = self.module.later[key] = DeferredKernel(self.module.function(name, []), build)
            self.module.uses += uses
        later.call(self.function, pointers)

    def attempt(self, name: str, *arguments: tuple[str, Index]) -> None:
        """Call a function that gives 0 where all went well; where it did not, the function that is open ends as well."""
        status = self.function.call("i64", f"@{name}", *arguments)
        with self.function.when(self.function.value(f"icmp ne i64 {status}, 0")):
            self.function.give(status)


@dataclass(frozen=True, slots=True)
class Site:
    """The memory of one kernel: what it reads, what it writes, and what is its own for as long as it runs."""

    operands: Sequence[StoredArray]
    results: Sequence[StoredArray]
    scratch: str


Emit: TypeAlias = Callable[[Emission, Node, Site], None]
Supports: TypeAlias = Callable[[Node], str | None]
Scratch: TypeAlias = Callable[[Node, int], int]


@dataclass(frozen=True, slots=True)
class Emitter:
    """The emitter of the nodes of one primitive."""

    emit: Emit
    supports: Supports
    """The reason why a node cannot be emitted; None if it can."""
    scratch: Scratch
    """Bytes of scratch memory of the kernel, for a node and a width of registers in bits."""


#: Rules whose kernels end the program where a value is not for native code.
_DECLINING = ("one_unless", "python_number")

#: Emitters by the module that enters them, which is imported when the first of its primitives is looked up: to import all of
#: them is a fifth of what a first plan takes.
_LOADED_LATER = {
    "pullback.backends.native.kernels.cumulative": (
        "cumsum",
        "cumprod",
        "linear_recurrence",
        "argmax",
        "argmin",
        "running_argmax",
        "running_argmin",
    ),
    "pullback.backends.native.bodies.switches": ("switch", "checkpointed"),
    "pullback.backends.native.kernels.convolutions": ("conv", "conv_data_gradient", "conv_weight_gradient"),
    "pullback.backends.native.kernels.diagonals": ("diagonal", "on_diagonal", "lower_triangle", "upper_triangle"),
    "pullback.backends.native.kernels.fourier": ("complex_of", "fft_parts", "rfft_parts", "irfft_parts"),
    "pullback.backends.native.kernels.gathers": (
        *("gather", "take_along", "scatter_add", "put_along", "set_at", "add_at", "class_numbers"),
    ),
    "pullback.backends.native.bodies.scans": ("scan",),
    "pullback.backends.native.kernels.data_movement": ("scatter", "concatenate"),
    "pullback.backends.native.kernels.pooling": ("mean_pool", "max_pool", "mean_spread", "max_select", "max_spread"),
    "pullback.backends.native.kernels.products": ("matmul",),
    "pullback.backends.native.kernels.declined_values": _DECLINING,
    "pullback.backends.native.bodies.while_loops": ("while",),
    "pullback.backends.native.kernels.linear.decompositions": ("eigh", "eigvalsh", "qr", "svd", "svdvals"),
    "pullback.backends.native.kernels.linear.factorizations": ("lu", "cholesky", "cholesky_pull", "adjugate"),
    "pullback.backends.native.kernels.linear.systems": ("lu_solve", "solve_triangular"),
    "pullback.backends.native.kernels.sorting": ("argsort", "argpartition", "searchsorted"),
}
_MODULES = {name: module for module, names in _LOADED_LATER.items() for name in names}


class _Emitters(dict[Primitive, Emitter]):
    """The table of emitters."""

    def __missing__(self, primitive: Primitive) -> Emitter:
        if primitive.name not in _MODULES:
            raise KeyError(primitive)
        import_module(_MODULES[primitive.name])
        return self[primitive]

    def find(self, primitive: Primitive) -> Emitter | None:
        """The emitter of a primitive, if it has one."""
        return self[primitive] if primitive in self or primitive.name in _MODULES else None


EMITTERS = _Emitters()


def may_decline(graph: Graph) -> bool:
    """True if a node of a graph, outside of its loops and branches, ends the program for some values."""
    return any(node.primitive.name in _DECLINING for node in graph.nodes)


def emits(
    *primitives: Primitive,
    supports: Supports = lambda _: None,
    scratch: Scratch = lambda _, __: 0,
) -> Callable[[Emit], Emit]:
    """Enter an emitter for primitives; dtypes that native programs do not compute with are refused first."""

    def enter(emit: Emit) -> Emit:
        for primitive in primitives:
            EMITTERS[primitive] = Emitter(emit, supports, scratch)
        return emit

    return enter


def why_not_floats(node: Node) -> str | None:
    """The reason why a node is not emitted that is emitted for floats of one dtype only; None if it has no others."""
    dtypes = {atom.type.dtype for atom in (*node.inputs, *node.outputs)}
    if len(dtypes) > 1:
        return f"{node.primitive.name} of operands of different dtypes"
    if any(dtype.kind != "f" for dtype in dtypes):
        return f"{node.primitive.name} of {dtypes.pop().name}"
    return None
