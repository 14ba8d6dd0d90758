"""log, log1p, log2, log10: x = 2^e m with m from sqrt(1/2) to sqrt(2), and log x = e ln 2 + log m.

In single precision log(1 + f) = f - f^2/2 + f^3 P(f). In double precision a polynomial in f would need twenty terms; one
in s = f / (2 + f), with log(1 + f) = 2 atanh(s), needs seven and a division; written around f - f^2/2 the error of s
does not count (the idea is that of the Sun library fdlibm).
"""

from pullback.backends.native.elementary.exp import ln2_parts
from pullback.backends.native.elementary.formats import format_of, is_single, polynomial
from pullback.backends.native.writing.lanes import Lanes

# (log(1 + f) - f + f^2/2) / f^3 on sqrt(1/2) - 1 <= f <= sqrt(2) - 1; relative error of the logarithm below 2**-27.3.
_REST_SINGLE = (0.3333333, -0.2500082, 0.20001242, -0.16623409, 0.14201583, -0.13159616, 0.12762183, -0.07636362)
# (2 atanh(s) - 2 s) / s^3 in z = s^2 <= 0.02946; relative error of the logarithm below 2**-58.4 (tools/coefficients.py).
_REST_DOUBLE = (
    0.6666666666666735,
    0.3999999999940984,
    0.2857142874348664,
    0.22222198457121248,
    0.18183570560623036,
    0.15313885365440355,
    0.14797662218937513,
)
_SQRT_HALF_BITS = {4: 0x3F3504F3, 8: 0x3FE6A09E667F3BCD}
_ONE_BITS = {4: 0x3F800000, 8: 0x3FF0000000000000}


def split(lanes: Lanes, x: str) -> tuple[str, str]:
    """The exponent e and the fraction m of a positive x; e is infinity or NaN where x is.

    The exponent becomes a float without a conversion, as the low bits of a float whose spacing is one.
    """
    format_, size = format_of(lanes), lanes.dtype.itemsize
    unit = 2.0**format_.fraction_bits
    tiny = lanes.compare("<", x, lanes.constant(format_.least_normal))
    normal = lanes.select(tiny, lanes.mul(x, lanes.constant(unit)), x)
    below_one = _ONE_BITS[size] - _SQRT_HALF_BITS[size]
    moved = lanes.on_bits("add", lanes.bits(normal), lanes.bits_constant(below_one))
    biased = lanes.on_bits("lshr", moved, lanes.bits_constant(format_.fraction_bits))
    with_unit = lanes.from_bits(lanes.on_bits("or", biased, lanes.bits(lanes.constant(unit))))
    bias = lanes.select(
        tiny,
        lanes.constant(unit + format_.bias + format_.fraction_bits),
        lanes.constant(unit + format_.bias),
    )
    e = lanes.sub(with_unit, bias)
    fraction = lanes.on_bits("and", moved, lanes.bits_constant(format_.fraction_mask))
    m = lanes.from_bits(lanes.on_bits("add", fraction, lanes.bits_constant(_SQRT_HALF_BITS[size])))
    return lanes.select(lanes.compare("<", x, lanes.constant(float("inf"))), e, x), m


def _combined(lanes: Lanes, e: str, f: str) -> str:
    """The sum e ln 2 + log(1 + f)."""
    first, second = (lanes.constant(part) for part in ln2_parts(lanes))
    if is_single(lanes):
        square = lanes.mul(f, f)
        rest = lanes.mul(lanes.mul(f, square), polynomial(lanes, f, _REST_SINGLE))
        rest = lanes.mul_add(e, second, rest)
        rest = lanes.mul_add(lanes.constant(-0.5), square, rest)
        return lanes.mul_add(e, first, lanes.add(f, rest))
    s = lanes.div(f, lanes.add(f, lanes.constant(2.0)))
    z = lanes.mul(s, s)
    series = lanes.mul(z, polynomial(lanes, z, _REST_DOUBLE))
    half_square = lanes.mul(lanes.mul(f, f), lanes.constant(0.5))
    rest = lanes.mul_add(e, second, lanes.mul(s, lanes.add(half_square, series)))
    return lanes.mul_add(e, first, lanes.sub(f, lanes.sub(half_square, rest)))


def at_border(lanes: Lanes, x: str, y: str, *, border: float = 0.0) -> str:
    """A logarithm y of x where x is above the border; there it is minus infinity, below it NaN."""
    zero = lanes.constant(border)
    outside = lanes.select(lanes.compare("==", x, zero), lanes.constant(float("-inf")), lanes.constant(float("nan")))
    return lanes.select(lanes.compare("<=", x, zero), outside, y)


def log(lanes: Lanes, x: str) -> str:
    """Natural logarithm."""
    e, m = split(lanes, x)
    return at_border(lanes, x, _combined(lanes, e, lanes.sub(m, lanes.constant(1.0))))
