"""Fourier transforms by NumPy's own loops, called from within the program, and complex arrays made of parts.

A loop of `numpy.fft` takes pointers, lengths and strides, and needs no Python. It reads and writes complex numbers, so parts are
copied to and from a buffer in which they alternate:

    fft_parts re, im     parts -> buffer;  the loop over each axis in the buffer, the last one first;  buffer -> parts
    rfft_parts x         the loop from x to the buffer;  buffer -> parts
    irfft_parts re, im   parts -> buffer;  the loop from the buffer to the result
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import memory_type, number
from pullback.backends.native.emission import Emission, Site, StoredArray, emits
from pullback.backends.native.kernels.data_movement import copy_into, fill
from pullback.backends.native.kernels.index_loops import each
from pullback.backends.native.linking.symbols import fft_data, why_no_fft
from pullback.core.types import Shape
from pullback.ir.graph import Node
from pullback.ir.strides import contiguous_strides
from pullback.rules.complex_parts import complex_of, fft_parts, irfft_parts, rfft_parts


@emits(complex_of)
def _emit_complex(emission: Emission, _node: Node, site: Site) -> None:
    (result,) = site.results
    for operand, part in zip(
        site.operands, _parts_at(emission, result.pointer, result.shape, site.operands[0].dtype), strict=True
    ):
        copy_into(emission, operand, part)


def _parts_at(emission: Emission, pointer: str, shape: Shape, dtype: np.dtype[Any]) -> tuple[StoredArray, StoredArray]:
    """The parts of complex numbers in C order."""
    strides = tuple(2 * stride for stride in contiguous_strides(shape))
    places = (pointer, emission.function.element(pointer, 1, memory_type(dtype)))
    re, im = (StoredArray(place, shape, strides, dtype) for place in places)
    return re, im


def _why_not(node: Node) -> str | None:
    reason = why_no_fft()
    return None if reason is None else f"{node.primitive.name}, as {reason}"


def _scratch(node: Node, _vector_bits: int) -> int:
    spectrum = (node.inputs if node.primitive is irfft_parts else node.outputs)[0].type
    return 2 * spectrum.nbytes


@emits(fft_parts, supports=_why_not, scratch=_scratch)
def _emit_fft(emission: Emission, node: Node, site: Site) -> None:
    params, x = dict(node.params), site.operands[0]
    re, im = _parts_at(emission, site.scratch, x.shape, x.dtype)
    copy_into(emission, x, re)
    if len(site.operands) > 1:
        copy_into(emission, site.operands[1], im)
    else:
        fill(emission, im, 0)
    name = "ifft" if params["inverse"] else "fft"
    for axis in reversed(params["axes"]):
        factor = _factor(params["norm"], x.shape[axis], x.dtype, is_forward=not params["inverse"])
        _call(emission, name, axis, re, re, factor)
    for part, result in zip((re, im), site.results, strict=True):
        copy_into(emission, part, result)


@emits(rfft_parts, supports=_why_not, scratch=_scratch)
def _emit_rfft(emission: Emission, node: Node, site: Site) -> None:
    params, (x,) = dict(node.params), site.operands
    axis = params["axis"]
    length = x.shape[axis]
    re, im = _parts_at(emission, site.scratch, site.results[0].shape, x.dtype)
    factor = _factor(params["norm"], length, x.dtype, is_forward=True)
    _call(emission, "rfft_n_odd" if length % 2 else "rfft_n_even", axis, x, re, factor)
    for part, result in zip((re, im), site.results, strict=True):
        copy_into(emission, part, result)


@emits(irfft_parts, supports=_why_not, scratch=_scratch)
def _emit_irfft(emission: Emission, node: Node, site: Site) -> None:
    params, (result,) = dict(node.params), site.results
    axis, length = params["axis"], params["n"]
    parts = _parts_at(emission, site.scratch, site.operands[0].shape, site.operands[0].dtype)
    for operand, part in zip(site.operands, parts, strict=True):
        copy_into(emission, operand, part)
    factor = _factor(params["norm"], length, result.dtype, is_forward=False)
    _call(emission, "irfft", axis, parts[0], result, factor)


def _factor(norm: str, length: int, dtype: np.dtype[Any], *, is_forward: bool) -> Any:
    """The number that a transform multiplies by, rounded as NumPy rounds it."""
    if norm == "ortho":
        return np.reciprocal(np.sqrt(length, dtype=dtype))
    return np.reciprocal(length, dtype=dtype) if (norm == "forward") == is_forward else dtype.type(1)


def _call(emission: Emission, ufunc: str, axis: int, source: StoredArray, target: StoredArray, factor: Any) -> None:
    """Transform along an axis; spectra are given by their real parts.

    The loop goes over one more axis by itself, the longest: it takes several lines at once where it can.
    """
    dtype = source.dtype
    char, itemsize = dtype.char, dtype.itemsize
    others = [other for other in range(len(source.shape)) if other != axis]
    inner = max(others, key=lambda other: source.shape[other], default=None)
    outer = [other for other in others if other != inner]
    count, steps = 1, (0, 0)
    if inner is not None:
        count, steps = source.shape[inner], (source.strides[inner], target.strides[inner])
    strides = (steps[0], 0, steps[1], source.strides[axis], target.strides[axis])
    data = f"numpy_fft_data_{ufunc}_{char}" if fft_data(ufunc, char) else None

    def build(function: Function, pointers: Sequence[str]) -> None:
        module = function.module
        dims = module.constant("[3 x i64]", _words((count, source.shape[axis], target.shape[axis])))
        moves = module.constant("[5 x i64]", _words([stride * itemsize for stride in strides]))
        scale = module.constant(memory_type(dtype), number(factor, dtype))
        loop = module.declare(f"numpy_fft_loop_{ufunc}_{char}", "void", "ptr", "ptr", "ptr", "ptr")
        given = "null" if data is None else module.declare(data, "void")
        arguments = function.slot("ptr", count=3)
        places = [function.element(arguments, place, "ptr") for place in range(3)]
        function.store("ptr", scale, places[1])

        def write(_places: Sequence[Index], at: Index, to: Index) -> None:
            function.store("ptr", function.element(pointers[0], at, memory_type(dtype)), places[0])
            function.store("ptr", function.element(pointers[1], to, memory_type(dtype)), places[2])
            function.call("void", loop, ("ptr", arguments), ("ptr", dims), ("ptr", moves), ("ptr", given))

        each(function, outer, (source, target), write)

    key = ("fft", ufunc, axis, source.layout, target.layout, repr(factor))
    emission.kernel(key, f"{ufunc}_{source.shape[axis]}", [source.pointer, target.pointer], build)


def _words(numbers: Sequence[int]) -> str:
    return f"[{', '.join(f'i64 {word}' for word in numbers)}]"
