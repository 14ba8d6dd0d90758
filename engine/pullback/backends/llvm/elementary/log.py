"""log, log1p, log2, log10: x = 2^e m with m from sqrt(1/2) to sqrt(2), and log x = e ln 2 + log m.

In single precision log(1 + f) = f - f^2/2 + f^3 P(f). In double precision a polynomial in f would need twenty terms; one
in s = f / (2 + f), with log(1 + f) = 2 atanh(s), needs seven and a division; written around f - f^2/2 the error of s
does not count (the idea is that of the Sun library fdlibm).
"""

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.elementary.exp import ln2_parts, log10_2_parts
from pullback.backends.llvm.elementary.float_formats import at_least, at_most, format_of, is_single, polynomial
from pullback.dataclass import dataclass

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
# 1 / ln 2 and 1 / ln 10 as first + second, the first with half of the digits: its product with as many digits is exact.
_LOG2_E = {4: (1.4423828125, 0.00031222838896340733), 8: (1.4426950216293335, 1.9259629911266175e-08)}
_LOG10_E = {4: (0.4342041015625, 9.038034075182765e-05), 8: (0.4342944771051407, 4.798111141615973e-09)}


@dataclass(frozen=True, slots=True)
class Logarithm:
    """The logarithm of 2^e (1 + f), in parts: f minus a little, of which `rest` is most."""

    e: str
    f: str
    rest: str


def split(lanes: Lanes, x: str, *, normal: bool = False) -> tuple[str, str]:
    """The exponent e and the fraction m of a positive finite x; denormals are brought up first, where it may be one.

    The exponent becomes a float without a conversion, as the low bits of a float whose spacing is one.
    """
    format_, size = format_of(lanes), lanes.dtype.itemsize
    unit = 2.0**format_.fraction_bits
    bias = lanes.constant(unit + format_.bias)
    if not normal:
        tiny = lanes.compare("<", x, lanes.constant(format_.least_normal))
        x = lanes.select(tiny, lanes.mul(x, lanes.constant(unit)), x)
        bias = lanes.select(tiny, lanes.constant(unit + format_.bias + format_.fraction_bits), bias)
    below_one = format_.one_bits - _SQRT_HALF_BITS[size]
    moved = lanes.on_bits("add", lanes.bits(x), lanes.bits_constant(below_one))
    biased = lanes.on_bits("lshr", moved, lanes.bits_constant(format_.fraction_bits))
    with_unit = lanes.from_bits(lanes.on_bits("or", biased, lanes.bits(lanes.constant(unit))))
    fraction = lanes.on_bits("and", moved, lanes.bits_constant(format_.fraction_mask))
    m = lanes.from_bits(lanes.on_bits("add", fraction, lanes.bits_constant(_SQRT_HALF_BITS[size])))
    return lanes.sub(with_unit, bias), m


def of_fraction(lanes: Lanes, e: str, f: str, start: str | None = None) -> Logarithm:
    """The logarithm of 1 + f as f + rest, with something else that is small added to the rest before its largest part."""
    if is_single(lanes):
        square = lanes.mul(f, f)
        rest = lanes.mul(lanes.mul(f, square), polynomial(lanes, f, _REST_SINGLE))
        rest = lanes.add(rest, start) if start else rest
        return Logarithm(e, f, lanes.mul_add(lanes.constant(-0.5), square, rest))
    s = lanes.div(f, lanes.add(f, lanes.constant(2.0)))
    z = lanes.mul(s, s)
    series = lanes.mul(z, polynomial(lanes, z, _REST_DOUBLE))
    half_square = lanes.mul(lanes.mul(f, f), lanes.constant(0.5))
    rest = lanes.mul(s, lanes.add(half_square, series))
    rest = lanes.add(rest, start) if start else rest
    return Logarithm(e, f, lanes.sub(rest, half_square))


def _natural(lanes: Lanes, e: str, f: str, low: str | None = None) -> str:
    """The sum e ln 2 + log(1 + f + low); low is so small that all of its logarithm's digits are its own."""
    first, second = (lanes.constant(part) for part in ln2_parts(lanes))
    start = lanes.mul(e, second) if low is None else lanes.mul_add(e, second, low)
    parts = of_fraction(lanes, e, f, start)
    return lanes.mul_add(e, first, lanes.add(f, parts.rest))


def at_border(lanes: Lanes, x: str, y: str, *, border: float = 0.0) -> str:
    """A logarithm y of x where x is finite and above the border; there it is minus infinity, below it NaN."""
    y = lanes.select(lanes.compare("<", x, lanes.constant(float("inf"))), y, x)
    edge = lanes.constant(border)
    nowhere = lanes.select(lanes.compare("==", x, edge), lanes.constant(float("-inf")), lanes.constant(float("nan")))
    return lanes.select(lanes.compare("<=", x, edge), nowhere, y)


def log(lanes: Lanes, x: str) -> str:
    """Natural logarithm."""
    e, m = split(lanes, x)
    return at_border(lanes, x, _natural(lanes, e, lanes.sub(m, lanes.constant(1.0))))


# --- other bases ----------------------------------------------------------------------------------------------------
def _in_base(lanes: Lanes, x: str, factor: tuple[float, float], of_two: tuple[float, float]) -> str:
    """The logarithm of x times a factor in two parts; `of_two` is the logarithm of 2 in that base, in two parts.

    f is cut to half of its digits, so that its product with the first part of the factor is exact, and the sum with the
    exponent is made with its rounding error: powers of the base come out whole.
    """
    e, m = split(lanes, x)
    f = lanes.sub(m, lanes.constant(1.0))
    rounding = lanes.rounding_each()
    high = lanes.from_bits(lanes.on_bits("and", lanes.bits(f), lanes.bits_constant(format_of(lanes).upper_half_mask)))
    low = lanes.add(rounding.sub(f, high), of_fraction(lanes, e, f).rest)
    product = rounding.mul(high, lanes.constant(factor[0]))
    rest = lanes.mul_add(high, lanes.constant(factor[1]), lanes.mul(low, lanes.constant(factor[0] + factor[1])))
    whole = lanes.mul(e, lanes.constant(of_two[0])) if of_two[0] != 1 else e
    rest = lanes.mul_add(e, lanes.constant(of_two[1]), rest) if of_two[1] else rest
    total = rounding.add(whole, product)
    lost = rounding.add(rounding.sub(whole, total), product)
    return at_border(lanes, x, lanes.add(total, lanes.add(lost, rest)))


def log2(lanes: Lanes, x: str) -> str:
    """Binary logarithm, exact for powers of two."""
    return _in_base(lanes, x, _LOG2_E[lanes.dtype.itemsize], (1.0, 0.0))


def log10(lanes: Lanes, x: str) -> str:
    """Decimal logarithm."""
    return _in_base(lanes, x, _LOG10_E[lanes.dtype.itemsize], log10_2_parts(lanes))


# --- sums -----------------------------------------------------------------------------------------------------------
def one_plus(lanes: Lanes, w: str) -> tuple[str, str]:
    """The sum 1 + w and what rounding it has lost, for w above -1."""
    rounding = lanes.rounding_each()
    larger, smaller = at_least(lanes, w, 1.0), at_most(lanes, w, 1.0)
    u = rounding.add(larger, smaller)
    return u, rounding.sub(smaller, rounding.sub(u, larger))


def of_sum(lanes: Lanes, u: str, c: str, *, doublings: str | None = None, normal: bool = True) -> str:
    """The logarithm of (u + c) 2^doublings for a positive finite u and c below its last place, 0 where u is denormal.

    With u = 2^e m the second number joins the fraction as c 2^-e; that power is the quotient of m and u, taken from their
    bits. Where u is so large that the power is none c does not count.
    """
    format_ = format_of(lanes)
    e, m = split(lanes, u, normal=normal)
    power = lanes.on_bits("sub", lanes.bits(m), lanes.bits(u))
    power = lanes.from_bits(lanes.on_bits("add", power, lanes.bits_constant(format_.one_bits)))
    counts = lanes.compare("<", u, lanes.constant(2.0 ** (2 * format_.fraction_bits)))
    moved = lanes.select(counts, lanes.mul(c, power), lanes.constant(0.0))
    rounding = lanes.rounding_each()
    from_one = rounding.sub(m, lanes.constant(1.0))
    f = rounding.add(from_one, moved)
    lost = rounding.sub(moved, rounding.sub(f, from_one))
    return _natural(lanes, e if doublings is None else lanes.add(e, doublings), f, lost)


def quotient(lanes: Lanes, above: str, below: str, below_rest: str, above_rest: str | None = None) -> tuple[str, str]:
    """The quotient of two sums of two floats, and what it lacks."""
    q = lanes.div(above, below)
    back = lanes.neg(q)
    missing = lanes.mul_add(back, below_rest, lanes.fma(back, below, above))
    return q, lanes.div(missing if above_rest is None else lanes.add(missing, above_rest), below)


def log1p(lanes: Lanes, x: str) -> str:
    """The logarithm of 1 + x, with all digits near 0."""
    y = of_sum(lanes, *one_plus(lanes, x))
    return lanes.copysign(at_border(lanes, x, y, border=-1.0), x)  # of -0 it is -0
