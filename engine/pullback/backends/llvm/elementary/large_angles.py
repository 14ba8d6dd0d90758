"""Circular functions of large arguments, for machines without a C library.

Of x = m 2^e, with a whole number m of 53 bits, x 2/pi is needed modulo 4 alone: what the bits of 2/pi give that are more than
e places in front of the point is a multiple of 4. So m is multiplied by 192 bits from there on (Payne and Hanek, 1983). The first
two bits of the product are quarters of a turn, the others a fraction of one. Doubles come no nearer to a multiple of pi/2 than
2^-61, so 75 bits of the fraction are right where 53 are needed.
"""

import math
from collections.abc import Callable

import numpy as np

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.llvm.elementary.trigonometric import Angle, angle_of, cosine_of, sine_of, tangent_of

_FUNCTIONS: dict[str, Callable[[Lanes, str, Angle], str]] = {"sin": sine_of, "cos": cosine_of, "tan": tangent_of}

#: Words of the table: 64 zero bits, for exponents down to -63, and 2/pi to the last bit that the largest double meets.
_WORDS = 21

#: pi/2 as a sum of floats.
_QUARTER = (1.5707963267948966, 6.123233995736766e-17)


def define_called(module: Module) -> None:
    """Define the circular functions of doubles that a module calls from outside."""
    for name, function in _FUNCTIONS.items():
        if module.is_declared(name):
            _define(module, name, function)


def _define(module: Module, name: str, of_angle: Callable[[Lanes, str, Angle], str]) -> None:
    function = module.function(name, [("double", "x")], returns="double")
    lanes = Lanes(function, np.dtype("f8"), 1)
    size = lanes.absolute("%x")
    y = of_angle(lanes, "%x", angle_of(lanes, size, *_reduced(module, function, lanes, size)))
    is_finite = lanes.compare("<", size, lanes.constant(math.inf))
    function.give(lanes.select(is_finite, y, lanes.constant(math.nan)))


def _reduced(module: Module, function: Function, lanes: Lanes, size: str) -> tuple[str, str, str]:
    """The rest of an angle above 2^17 without quarters of a turn, their number, and what the rest lacks."""

    def word(text: str) -> str:
        return function.value(text)

    bits = lanes.bits(size)
    exponent = word(f"lshr i64 {bits}, 52")
    m = word(f"or i64 {word(f'and i64 {bits}, {2**52 - 1}')}, {2**52}")
    # The first bit that counts is number e - 1 of 2/pi, where e = exponent - 1075; 64 zeros stand before.
    first = word(f"sub i64 {exponent}, {1075 + 1 - 64 + 1}")
    place = word(f"lshr i64 {first}, 6")
    shift = word(f"and i64 {first}, 63")
    table = module.constant(f"[{_WORDS} x i64]", f"[{', '.join(f'i64 {one}' for one in _bits_of_two_over_pi())}]")
    start = word(f"getelementptr i64, ptr {table}, i64 {place}")
    words = [function.load("i64", word(f"getelementptr i64, ptr {start}, i64 {k}"), align=8) for k in range(4)]
    high, middle, low = (_shifted(function, words[k], words[k + 1], shift) for k in range(3))
    below, carried = _product(function, m, low, "0")
    center, carried = _product(function, m, middle, carried)
    above = word(f"add i64 {word(f'mul i64 {m}, {high}')}, {carried}")
    quarters = word(f"lshr i64 {above}, 62")
    upper = _shifted(function, above, center, "2")
    lower = _shifted(function, center, below, "2")
    # From half a quarter on, the next one is nearer: the fraction is then negative.
    is_next = word(f"lshr i64 {upper}, 63")
    quarters = word(f"add i64 {quarters}, {is_next}")
    flip = word(f"sub i64 0, {is_next}")
    upper, lower = (word(f"xor i64 {part}, {flip}") for part in (upper, lower))  # one less in the last of 128 bits
    module.declare("llvm.ctlz.i64", "i64", "i64", "i1 immarg")
    zeros = word(f"call i64 @llvm.ctlz.i64(i64 {upper}, i1 false)")
    zeros = word(f"call i64 @llvm.umin.i64(i64 {zeros}, i64 63)")
    module.declare("llvm.umin.i64", "i64", "i64", "i64")
    digits = _shifted(function, upper, lower, zeros)
    head = word(f"uitofp i64 {word(f'and i64 {digits}, -2048')} to double")
    tail = word(f"uitofp i64 {word(f'and i64 {digits}, 2047')} to double")
    scale = lanes.from_bits(word(f"shl i64 {word(f'sub i64 {1023 - 64}, {zeros}')}, 52"))
    sign = word(f"shl i64 {is_next}, 63")
    scale = lanes.from_bits(word(f"or i64 {lanes.bits(scale)}, {sign}"))
    head, tail = lanes.mul(head, scale), lanes.mul(tail, scale)
    quarter, lacking = (lanes.constant(part) for part in _QUARTER)
    rounding = lanes.rounding_each()
    r = rounding.mul(head, quarter)
    lost = lanes.fma(head, quarter, lanes.neg(r))
    lost = lanes.fma(head, lacking, lanes.fma(tail, quarter, lost))
    return r, quarters, lost


def _shifted(function: Function, high: str, low: str, count: str) -> str:
    """The upper 64 of 128 bits that are shifted to the left."""
    function.module.declare("llvm.fshl.i64", "i64", "i64", "i64", "i64")
    return function.value(f"call i64 @llvm.fshl.i64(i64 {high}, i64 {low}, i64 {count})")


def _product(function: Function, a: str, b: str, carried: str) -> tuple[str, str]:
    """The lower and the upper 64 bits of a product of 64-bit numbers and what is carried into it."""
    wide = [function.value(f"zext i64 {one} to i128") for one in (a, b, carried)]
    product = function.value(f"mul i128 {wide[0]}, {wide[1]}")
    total = function.value(f"add i128 {product}, {wide[2]}")
    upper = function.value(f"lshr i128 {total}, 64")
    return function.value(f"trunc i128 {total} to i64"), function.value(f"trunc i128 {upper} to i64")


def _bits_of_two_over_pi() -> list[int]:
    """2/pi in words of 64 bits, behind one of zeros; computed with 128 bits more than are given."""
    count = 64 * (_WORDS - 1)
    precision = count + 128
    unit = 1 << precision
    pi = 4 * (4 * _arctan_of_inverse(5, unit) - _arctan_of_inverse(239, unit))  # Machin's formula
    bits = (2 * unit * unit // pi) >> (precision - count)
    return [0, *(bits >> count - 64 * (k + 1) & 2**64 - 1 for k in range(_WORDS - 1))]


def _arctan_of_inverse(n: int, unit: int) -> int:
    """arctan(1/n) in a unit."""
    total, power, k = 0, unit // n, 0
    while power:
        total += (power if k % 2 == 0 else -power) // (2 * k + 1)
        power //= n * n
        k += 1
    return total
