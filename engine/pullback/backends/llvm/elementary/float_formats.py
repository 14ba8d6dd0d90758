"""The two formats of floats, and what elementary functions do to their bits."""

from collections.abc import Sequence

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format of IEEE 754."""

    fraction_bits: int
    bias: int

    @property
    def magic(self) -> float:
        """1.5 * 2**fraction_bits: adding it rounds to a whole number, and leaves that in the low bits of the sum.

        Where it was added the spacing of floats is one. Unlike fptosi it is defined for NaN, and unlike a conversion of
        doubles to 64-bit integers every machine has it for vectors.
        """
        return 1.5 * 2.0**self.fraction_bits

    @property
    def least_normal(self) -> float:
        """Below are the denormals, which have fewer digits."""
        return 2.0 ** (1 - self.bias)

    @property
    def fraction_mask(self) -> int:
        """The bits of the fraction."""
        return (1 << self.fraction_bits) - 1

    @property
    def sign_bit(self) -> int:
        """The bit of the sign, which alone is the least integer."""
        return -(2 * (self.bias + 1) << self.fraction_bits)

    @property
    def one_bits(self) -> int:
        """The bits of 1."""
        return self.bias << self.fraction_bits

    @property
    def upper_half_mask(self) -> int:
        """All bits but those of the lower half of the digits: products of two numbers so cut off are exact."""
        return -(1 << ((self.fraction_bits + 2) // 2))


SINGLE = Format(fraction_bits=23, bias=127)
DOUBLE = Format(fraction_bits=52, bias=1023)


def is_single(lanes: Lanes) -> bool:
    """True if these are floats of 4 bytes."""
    return lanes.dtype.itemsize == 4


def format_of(lanes: Lanes) -> Format:
    """The format of the floats in lanes."""
    return SINGLE if is_single(lanes) else DOUBLE


def polynomial(lanes: Lanes, x: str, coefficients: Sequence[float]) -> str:
    """Value at x of the polynomial with these coefficients, lowest first, by Horner's rule with fused multiply-adds."""
    value = lanes.constant(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = lanes.mul_add(value, x, lanes.constant(coefficient))
    return value


def at_most(lanes: Lanes, x: str, limit: float) -> str:
    """The smaller of x and a number; NaN stays NaN: in this order of operands it is one instruction."""
    bound = lanes.constant(limit)
    return lanes.select(lanes.compare("<", bound, x), bound, x)


def at_least(lanes: Lanes, x: str, limit: float) -> str:
    """The larger of x and a number; NaN stays NaN."""
    bound = lanes.constant(limit)
    return lanes.select(lanes.compare(">", bound, x), bound, x)


def shift_into_exponent(lanes: Lanes, bits: str) -> str:
    """The float 2**(n - bias), for bits whose lowest ones are a whole number n from 1 to 2 * bias."""
    width = lanes.bits_constant(format_of(lanes).fraction_bits)
    return lanes.from_bits(lanes.on_bits("shl", bits, width))
