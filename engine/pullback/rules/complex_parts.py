"""Complex arrays as their real and imaginary parts: what native plans compute with instead of complex numbers.

    z = complex_of(re, im)                   from two real arrays
    re, im = fft_parts(re, im)               as `fft`; of a real array im is left out
    re, im = rfft_parts(x)                   as `rfft`
    x = irfft_parts(re, im)                  as `irfft`

Only plans contain these rules, after everything was differentiated (`passes/complex_parts.py`), so they have no derivatives.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from pullback.core.cases import tested_in
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape, dtype_of
from pullback.errors import DifferentiationError
from pullback.rules.fourier import irfft, lines, transform_flops, with_length

#: The complex dtype of each dtype of parts.
COMPLEX_OF: Mapping[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.complex64),
    np.dtype(np.float64): np.dtype(np.complex128),
}


class PlanPrimitive(Primitive):
    """A rule that plans alone contain."""

    def pull(self, *_: Any) -> NoReturn:
        """Refuse: gradients are taken before."""
        raise DifferentiationError("the parts of a plan have no derivative; differentiate the function it came from")

    def push(self, *_: Any) -> NoReturn:
        """Refuse, as `pull`."""
        self.pull()


class _ComplexOf(PlanPrimitive):
    """The complex array of two parts that broadcast."""

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        re, im = operands
        z: Any = np.empty(np.broadcast_shapes(np.shape(re), np.shape(im)), COMPLEX_OF[dtype_of(re)])
        z.real, z.imag = re, im
        return z[()]

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        re, im = types
        return (ArrayType(np.broadcast_shapes(re.shape, im.shape), COMPLEX_OF[re.dtype]),)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return 0


class _Transform(PlanPrimitive):
    """A Fourier transform from and to parts."""

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return transform_flops(types)


class _FftParts(_Transform):
    results = 2

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        z = complex_of.evaluate(operands[0], operands[1] if len(operands) > 1 else 0.0)
        function = np.fft.ifftn if params["inverse"] else np.fft.fftn
        return _parts(function(z, axes=params["axes"], norm=params["norm"]))

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return (types[0], types[0])


class _RfftParts(_Transform):
    results = 2

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return _parts(np.fft.rfft(operands[0], axis=params["axis"], norm=params["norm"]))

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        shape: Shape = types[0].shape
        axis: int = params["axis"]
        part = ArrayType(with_length(shape, axis, lines(shape[axis])), types[0].dtype)
        return (part, part)


class _IrfftParts(_Transform):
    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return irfft.evaluate(complex_of.evaluate(*operands), **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return (ArrayType(with_length(types[0].shape, params["axis"], params["n"]), types[0].dtype),)


def _parts(z: Any) -> tuple[Any, Any]:
    return np.array(z.real), np.array(z.imag)


complex_of = _ComplexOf("complex_of")
fft_parts = _FftParts("fft_parts")
rfft_parts = _RfftParts("rfft_parts")
irfft_parts = _IrfftParts("irfft_parts")

tested_in("passes/test_complex_parts.py", "complex_of", "fft_parts", "rfft_parts", "irfft_parts")
