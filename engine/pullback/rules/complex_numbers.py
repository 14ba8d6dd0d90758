"""The parts of complex numbers.

They are linear over the real numbers only, so the mode matters: what is pushed is the operation itself, what is pulled is
its transpose under the pairing Re(v * dx), without conjugation, as in JAX.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import cast
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, dtype_of


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a number."""
    return np.zeros((), dtype).real.dtype


class _Part(Primitive):
    """A function of one complex number that is linear over the reals."""

    def __init__(
        self,
        name: str,
        evaluate: Callable[[Any], Any],
        transpose: Callable[[Any], Any],
        dtype: Callable[[np.dtype[Any]], np.dtype[Any]],
    ) -> None:
        super().__init__(name)
        self._evaluate = evaluate
        self._transpose = transpose
        self._dtype = dtype

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return self._evaluate(operands[0])

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        weak = types[0].weak and self is not conj  # parts of Python's numbers are Python's
        return (ArrayType(types[0].shape, self._dtype(types[0].dtype), weak=weak),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        return (cast(self._transpose(y_bar), dtype_of(operands[0])),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        return self(tangents[0])

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return self(operands[0])


def _copied(part: Any) -> Any:
    return np.array(part)[()] if issubclass(type(part), np.ndarray | np.generic) else part


# The parts are copied out: a view of every second number would keep the whole array alive.
real = _Part("real", lambda x: _copied(np.real(x)), lambda v: v, real_dtype)
imag = _Part("imag", lambda x: _copied(np.imag(x)), lambda v: v * -1j, real_dtype)
conj = _Part("conj", np.conjugate, np.conj, lambda dtype: dtype)

for _part in (real, imag, conj):
    cases(_part, normal(3, 4), because="complex numbers are tried in tests/engine/numpy_api/test_complex_numbers.py")
