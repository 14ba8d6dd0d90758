"""Convolution over all axes, bilinear, in its two sizes: every overlap ("full"), or whole overlaps only ("valid").

The transposes are convolutions again, with the other operand reversed: the cotangent of a operand of the full
convolution is a valid one and the other way round. "valid" takes a first operand that is at least as long everywhere.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import Bilinear, cast
from pullback.core.types import ArrayType, dtype_of


def _evaluate(a: Any, b: Any, *, mode: str) -> Any:
    from scipy.signal import convolve as scipy_convolve  # noqa: PLC0415 - a second that only a convolution pays: it imports scipy.stats too

    return scipy_convolve(a, b, mode=mode, method="direct").astype(np.result_type(a, b), copy=False)


def _type(a: ArrayType, b: ArrayType, *, mode: str) -> ArrayType:
    sign = 1 if mode == "full" else -1
    shape = tuple(m + sign * (n - 1) for m, n in zip(a.shape, b.shape, strict=True))
    return ArrayType(shape, np.result_type(a.dtype, b.dtype))


def _transpose_a(v: Any, a: Any, b: Any, *, mode: str) -> Any:
    return cast(convolve(v, np.flip(b), mode="valid" if mode == "full" else "full"), dtype_of(a))


def _transpose_b(v: Any, a: Any, b: Any, *, mode: str) -> Any:
    if mode == "full":
        return cast(convolve(v, np.flip(a), mode="valid"), dtype_of(b))
    return cast(np.flip(convolve(a, np.flip(v), mode="valid")), dtype_of(b))


def _flops(types: Sequence[ArrayType], result: ArrayType) -> int:
    return 2 * types[0].size * types[1].size


convolve: Bilinear = Bilinear("convolve", _evaluate, _type, _transpose_a, _transpose_b, _flops)

cases(convolve, normal(5), normal(3), mode="full")
cases(convolve, normal(2), normal(4), mode="full", because="the second may be longer")
cases(convolve, normal(4, 5), normal(3, 2), mode="full")
cases(convolve, normal(4, 5), normal(3, 2), mode="valid")
