"""Circular functions and their inverses.

An argument is brought to |r| <= pi/4 by taking off n pi/2 in three parts. With fused multiply-adds the first step is
exact, though the first part has all digits: the difference is a whole multiple of that part's last place, and below one.
What the second step rounds off is relative to r; it is put back together with the third part, which counts where x is
next to a multiple of pi/2 (Cody and Waite, with a fused multiply-add). Arguments too large for that are left to the
C library, lane by lane: they are rare.
"""

import math

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.elementary.exp import round_to_whole
from pullback.backends.llvm.elementary.float_formats import format_of, is_single, polynomial
from pullback.backends.llvm.elementary.log import quotient
from pullback.dataclass import dataclass

# (sin r - r) / r^3 and (cos r - 1 + r^2/2) / r^4 in z = r^2, |r| <= 0.789, as tools/coefficients.py finds them; relative
# errors of sin below 2**-27.9 and 2**-57.8, of cos below 2**-33.0 and 2**-63.9.
_SIN_SINGLE = (-0.16666655, 0.0083321845, -0.00019517206)
_SIN_DOUBLE = (
    -0.1666666666666663,
    0.008333333333321815,
    -0.00019841269829316894,
    2.7557313517382456e-06,
    -2.5050730127952804e-08,
    1.5895136224405881e-10,
)
_COS_SINGLE = (0.041666646, -0.0013887301, 2.443067e-05)
_COS_DOUBLE = (
    0.041666666666666595,
    -0.0013888888888873316,
    2.4801587288961493e-05,
    -2.755731419748312e-07,
    2.087570165392672e-09,
    -1.135850043838435e-11,
)
# (tan r - r) / r^3 in z = r^2; relative error below 2**-29.
_TAN_SINGLE = (0.33333352, 0.13332585, 0.054068346, 0.021240698, 0.010939152, -3.713154e-05, 0.0044369893)
# (arctan t - t) / t^3 in z = t^2: for |t| <= 1 and for |t| <= tan(pi/8); relative errors below 2**-28.6 and 2**-59.4.
_ARCTAN_SINGLE = (
    -0.33333302,
    0.19998628,
    -0.14265129,
    0.109569594,
    -0.08417635,
    0.058202922,
    -0.0314238,
    0.011047115,
    -0.0018232976,
)
_ARCTAN_DOUBLE = (
    -0.333333333333332,
    0.19999999999953771,
    -0.14285714280212825,
    0.11111110784185374,
    -0.09090897776351718,
    0.07692060508348975,
    -0.06663106960132588,
    0.058479074004652534,
    -0.05039372460940466,
    0.038065939068899234,
    -0.017908352992876766,
)
# (arcsin x - x) / x^3 in z = x^2 <= 1/4; relative errors below 2**-27.5 and 2**-59.8.
_ARCSIN_SINGLE = (0.16666754, 0.07495252, 0.04547604, 0.024152104, 0.04221175)
_ARCSIN_DOUBLE = (
    0.16666666666666763,
    0.07499999999970167,
    0.04464285717519646,
    0.030381942680467882,
    0.02237221573931234,
    0.017351598805400728,
    0.013980975614702488,
    0.011397668468329552,
    0.010787092798200023,
    0.0036810365116129633,
    0.021768120659826216,
    -0.021083516205332116,
    0.032680608989260784,
)

# pi/2 as a sum of floats.
_QUARTER = {
    4: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    8: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
#: Beyond, n pi/2 is not taken off here.
_FAR = {4: 2.0**17, 8: 2.0**40}
_TAN_OF_EIGHTH = math.sqrt(2) - 1


# --- sin, cos, tan --------------------------------------------------------------------------------------------------
def _reduce(lanes: Lanes, a: str) -> tuple[str, str, str]:
    """The rest r of a = |x| without quarters of a turn, bits whose lowest are their number, and what r lacks."""
    n, quarters = round_to_whole(lanes, a, 2 / math.pi, 0)
    first, second, third = (lanes.constant(-part) for part in _QUARTER[lanes.dtype.itemsize])
    exact = lanes.fma(n, first, a)
    r = lanes.fma(n, second, exact)
    rounded_off = lanes.fma(n, second, lanes.rounding_each().sub(exact, r))
    # Next to a multiple the difference of exact and r is none that can be held; r is then the smaller part of them.
    is_held = lanes.compare(">", lanes.absolute(r), lanes.constant(2.0**-6))
    rounded_off = lanes.select(is_held, rounded_off, lanes.constant(0.0))
    return r, quarters, lanes.fma(n, third, rounded_off)


@dataclass(frozen=True, slots=True)
class Angle:
    """An angle in quarters of a turn: their number, and sine and cosine of the rest, each as a sum of two floats."""

    size: str
    quarters: str
    sine: str
    sine_rest: str
    cosine: str
    cosine_rest: str


def _angle(lanes: Lanes, x: str) -> Angle:
    """Sine and cosine share everything but the choice between them; a derivative of one needs the other."""

    def write() -> Angle:
        size = lanes.absolute(x)
        return angle_of(lanes, size, *_reduce(lanes, size))

    return lanes.function.once(("angle", lanes.dtype, lanes.width, x), write)


def angle_of(lanes: Lanes, size: str, r: str, quarters: str, lost: str) -> Angle:
    """An angle of which r is left without quarters of a turn, and of that the part `lost` that r lacks."""
    z = lanes.mul(r, r)
    return Angle(size, quarters, *_sin_of_rest(lanes, r, z, lost), *_cos_of_rest(lanes, r, z, lost))


def _sum(lanes: Lanes, larger: str, smaller: str) -> tuple[str, str]:
    """The sum of two numbers, and what rounding it has lost."""
    rounding = lanes.rounding_each()
    total = rounding.add(larger, smaller)
    return total, rounding.sub(smaller, rounding.sub(total, larger))


def _sin_of_rest(lanes: Lanes, r: str, z: str, lost: str) -> tuple[str, str]:
    series = polynomial(lanes, z, _SIN_SINGLE if is_single(lanes) else _SIN_DOUBLE)
    return _sum(lanes, r, lanes.mul_add(lanes.mul(r, z), series, lost))


def _cos_of_rest(lanes: Lanes, r: str, z: str, lost: str) -> tuple[str, str]:
    """1 - z/2 + z^2 C(z), where what rounding 1 - z/2 loses is put back."""
    rounding, one = lanes.rounding_each(), lanes.constant(1.0)
    half = lanes.mul(z, lanes.constant(0.5))
    start = rounding.sub(one, half)
    rest = rounding.sub(rounding.sub(one, start), half)
    rest = lanes.sub(rest, lanes.mul(r, lost))
    series = polynomial(lanes, z, _COS_SINGLE if is_single(lanes) else _COS_DOUBLE)
    return _sum(lanes, start, lanes.mul_add(lanes.mul(z, z), series, rest))


def _is_odd(lanes: Lanes, quarters: str) -> str:
    last = lanes.on_bits("and", quarters, lanes.bits_constant(1))
    return lanes.function.value(f"icmp ne {lanes.bits_type} {last}, {lanes.bits_constant(0)}")


def _sign_of_half_turns(lanes: Lanes, quarters: str) -> str:
    """The bit of the sign, set where the number of quarters has its second bit set."""
    up = lanes.on_bits("shl", quarters, lanes.bits_constant(8 * lanes.dtype.itemsize - 2))
    return lanes.on_bits("and", up, lanes.bits_constant(format_of(lanes).sign_bit))


def _flip(lanes: Lanes, y: str, sign: str) -> str:
    return lanes.from_bits(lanes.on_bits("xor", lanes.bits(y), sign))


def _sign_of(lanes: Lanes, x: str) -> str:
    return lanes.on_bits("and", lanes.bits(x), lanes.bits_constant(format_of(lanes).sign_bit))


def _with_far(lanes: Lanes, name: str, x: str, size: str, y: str) -> str:
    """The values y, replaced by those of the C library's function where the size of x is beyond the reduction."""
    function = lanes.function
    is_far = lanes.compare(">", size, lanes.constant(_FAR[lanes.dtype.itemsize]))
    result = function.slot(lanes.type, y)
    with function.when(lanes.any_lane(is_far)):
        called = function.call(lanes.type, f"@{_far(lanes, name)}", (lanes.type, x), (lanes.type, y))
        function.store(lanes.type, called, result)
    return function.load(lanes.type, result)


def _far(lanes: Lanes, name: str) -> str:
    """A function of vectors x and y that gives y, but the C library's value where |x| is large; in double precision."""
    module, key = lanes.function.module, (name, "of far arguments", lanes.dtype, lanes.width)
    if key not in module.kernels:
        of_doubles = module.declare(name, "double", "double")
        function = module.function(f"{name}_far", [(lanes.type, "x"), (lanes.type, "y")], returns=lanes.type)
        module.kernels[key] = function
        one = Lanes(function, lanes.dtype, 1)
        double = one.as_dtype("f8")
        arguments = function.slot(lanes.element, count=lanes.width, align=64)
        values = function.slot(lanes.element, count=lanes.width, align=64)
        function.store(lanes.type, "%x", arguments, align=64)
        function.store(lanes.type, "%y", values, align=64)
        with function.loop(0, lanes.width) as lane:
            x = one.load(arguments, lane)
            limit = one.constant(_FAR[lanes.dtype.itemsize])
            with function.when(one.compare(">", one.absolute(x), limit)):
                exact = function.call("double", of_doubles, ("double", one.convert(x, double)))
                one.store(double.convert(exact, one), values, lane)
        function.give(function.load(lanes.type, values, align=64))
    return module.kernels[key].name


def sin(lanes: Lanes, x: str) -> str:
    """Sine: that of the rest in even quarters, its cosine in odd ones, negative in every other half turn."""
    angle = _angle(lanes, x)
    return _with_far(lanes, "sin", x, angle.size, sine_of(lanes, x, angle))


def sine_of(lanes: Lanes, x: str, angle: Angle) -> str:
    """Sine of x, whose size is an angle."""
    y = lanes.select(_is_odd(lanes, angle.quarters), angle.cosine, angle.sine)
    sign = lanes.on_bits("xor", _sign_of_half_turns(lanes, angle.quarters), _sign_of(lanes, x))
    return _flip(lanes, y, sign)


def cos(lanes: Lanes, x: str) -> str:
    """Cosine: sine, a quarter turn on."""
    angle = _angle(lanes, x)
    return _with_far(lanes, "cos", x, angle.size, cosine_of(lanes, x, angle))


def cosine_of(lanes: Lanes, x: str, angle: Angle) -> str:
    """Cosine of x, whose size is an angle."""
    del x
    y = lanes.select(_is_odd(lanes, angle.quarters), angle.sine, angle.cosine)
    next_quarters = lanes.on_bits("add", angle.quarters, lanes.bits_constant(1))
    return _flip(lanes, y, _sign_of_half_turns(lanes, next_quarters))


def tan(lanes: Lanes, x: str) -> str:
    """Tangent: that of the rest in even quarters, -1 over it in odd ones; in double precision a quotient."""
    if not is_single(lanes):
        angle = _angle(lanes, x)
        return _with_far(lanes, "tan", x, angle.size, tangent_of(lanes, x, angle))
    size = lanes.absolute(x)
    r, quarters, lost = _reduce(lanes, size)
    z = lanes.mul(r, r)
    series = polynomial(lanes, z, _TAN_SINGLE)
    near = lanes.add(r, lanes.mul_add(lanes.mul(r, z), series, lanes.mul_add(lost, z, lost)))
    y = lanes.select(_is_odd(lanes, quarters), lanes.div(lanes.constant(-1.0), near), near)
    return _with_far(lanes, "tan", x, size, _flip(lanes, y, _sign_of(lanes, x)))


def tangent_of(lanes: Lanes, x: str, angle: Angle) -> str:
    """Tangent of x, whose size is an angle, as a quotient."""
    is_odd = _is_odd(lanes, angle.quarters)
    above, above_rest = (
        lanes.select(is_odd, lanes.neg(cosine), sine)
        for cosine, sine in ((angle.cosine, angle.sine), (angle.cosine_rest, angle.sine_rest))
    )
    below = lanes.select(is_odd, angle.sine, angle.cosine)
    y, missing = quotient(lanes, above, below, lanes.select(is_odd, angle.sine_rest, angle.cosine_rest), above_rest)
    # Next to a pole the quotient may be infinite, and what it lacks is not a number.
    is_finite = lanes.compare("<", lanes.absolute(missing), lanes.constant(float("inf")))
    y = lanes.add(y, lanes.select(is_finite, missing, lanes.constant(0.0)))
    return _flip(lanes, y, _sign_of(lanes, x))


# --- arctan, arctan2 ------------------------------------------------------------------------------------------------
def _arctan_series(lanes: Lanes, t: str) -> str:
    """The difference of arctan t and t."""
    z = lanes.mul(t, t)
    series = polynomial(lanes, z, _ARCTAN_SINGLE if is_single(lanes) else _ARCTAN_DOUBLE)
    return lanes.mul(lanes.mul(t, z), series)


def _eighths(lanes: Lanes, count: str, t: str) -> str:
    """The sum of arctan t and a number of eighths of a turn; their first part is short, so that its multiples are exact."""
    first, second = _EIGHTH[lanes.dtype.itemsize]
    rest = lanes.mul_add(count, lanes.constant(second), _arctan_series(lanes, t))
    return lanes.mul_add(count, lanes.constant(first), lanes.add(t, rest))


# pi/4 cut off after 21 and 50 bits, and the rest.
_EIGHTH = {4: (0.785398006439209, 1.5695823932524066e-07), 8: (0.7853981633974483, 3.061616997868383e-17)}


def arctan(lanes: Lanes, x: str) -> str:
    """Inverse tangent: of |x|, or a quarter turn and that of -1 / |x|.

    In double precision numbers from tan(pi/8) to its inverse are an eighth of a turn and the angle of (|x| - 1) / (|x| + 1).
    """
    a, one, zero = lanes.absolute(x), lanes.constant(1.0), lanes.constant(0.0)
    is_large = lanes.compare(">", a, one if is_single(lanes) else lanes.constant(1 / _TAN_OF_EIGHTH))
    above, below, count = a, one, zero
    if not is_single(lanes):
        is_middle = lanes.compare(">", a, lanes.constant(_TAN_OF_EIGHTH))
        above = lanes.select(is_middle, lanes.sub(a, one), a)
        below = lanes.select(is_middle, lanes.add(a, one), one)
        count = lanes.select(is_middle, one, zero)
    above = lanes.select(is_large, lanes.constant(-1.0), above)
    below = lanes.select(is_large, a, below)
    count = lanes.select(is_large, lanes.constant(2.0), count)
    return lanes.copysign(_eighths(lanes, count, lanes.div(above, below)), x)


def arctan2(lanes: Lanes, y: str, x: str) -> str:
    """The angle of the point (x, y): from the quotient of the smaller by the larger of |x| and |y|, then by octants.

    Where both are infinite they count as equal; where both are zero the angle is 0 or half a turn, as the sign of x says.
    """
    height, width = lanes.absolute(y), lanes.absolute(x)
    one, zero = lanes.constant(1.0), lanes.constant(0.0)
    is_steep = lanes.compare(">", height, width)
    larger = lanes.select(is_steep, height, width)
    smaller = lanes.select(is_steep, width, height)
    is_infinite = lanes.compare("==", smaller, lanes.constant(float("inf")))
    smaller = lanes.select(is_infinite, one, smaller)
    larger = lanes.select(is_infinite, one, larger)
    larger = lanes.select(lanes.compare("==", larger, zero), one, larger)
    count = zero
    if not is_single(lanes):
        smaller, larger = _away_from_limits(lanes, smaller, larger)
        is_middle = lanes.compare(">", smaller, lanes.mul(larger, lanes.constant(_TAN_OF_EIGHTH)))
        total = lanes.add(smaller, larger)
        smaller = lanes.select(is_middle, lanes.sub(smaller, larger), smaller)
        larger = lanes.select(is_middle, total, larger)
        count = lanes.select(is_middle, one, zero)
    t = lanes.div(smaller, larger)
    t = lanes.select(is_steep, lanes.neg(t), t)
    count = lanes.select(is_steep, lanes.sub(lanes.constant(2.0), count), count)
    is_left = lanes.function.value(f"icmp slt {lanes.bits_type} {lanes.bits(x)}, {lanes.bits_constant(0)}")
    t = lanes.select(is_left, lanes.neg(t), t)
    count = lanes.select(is_left, lanes.sub(lanes.constant(4.0), count), count)
    angle = lanes.copysign(_eighths(lanes, count, t), y)
    is_nowhere = lanes.function.value(f"fcmp uno {lanes.type} {x}, {y}")
    return lanes.select(is_nowhere, lanes.constant(float("nan")), angle)


def _away_from_limits(lanes: Lanes, smaller: str, larger: str) -> tuple[str, str]:
    """Two numbers, both made smaller where their sum could overflow, or larger where they could be denormal."""
    one = lanes.constant(1.0)
    factor = lanes.select(lanes.compare(">", larger, lanes.constant(2.0**1000)), lanes.constant(2.0**-8), one)
    factor = lanes.select(lanes.compare("<", larger, lanes.constant(2.0**-900)), lanes.constant(2.0**100), factor)
    return lanes.mul(smaller, factor), lanes.mul(larger, factor)


# --- arcsin, arccos -------------------------------------------------------------------------------------------------
def _arcsin_parts(lanes: Lanes, x: str) -> tuple[str, str, str]:
    """Mask of |x| > 1/2, s, and arcsin(s) - s; s is sqrt((1 - |x|) / 2) in these lanes and |x| in the others."""
    a = lanes.absolute(x)
    is_large = lanes.compare(">", a, lanes.constant(0.5))
    half_rest = lanes.mul_add(a, lanes.constant(-0.5), lanes.constant(0.5))
    z = lanes.select(is_large, half_rest, lanes.mul(a, a))
    s = lanes.select(is_large, lanes.sqrt(half_rest), a)
    series = polynomial(lanes, z, _ARCSIN_SINGLE if is_single(lanes) else _ARCSIN_DOUBLE)
    return is_large, s, lanes.mul(lanes.mul(s, z), series)


def arcsin(lanes: Lanes, x: str) -> str:
    """Inverse sine: by its series up to 1/2, beyond as a quarter turn less twice that of sqrt((1 - x) / 2)."""
    is_large, s, more = _arcsin_parts(lanes, x)
    first, second, _ = _QUARTER[lanes.dtype.itemsize]
    two = lanes.constant(-2.0)
    far = lanes.mul_add(two, more, lanes.constant(second))
    far = lanes.add(lanes.mul_add(two, s, lanes.constant(first)), far)
    return lanes.copysign(lanes.select(is_large, far, lanes.add(s, more)), x)


def arccos(lanes: Lanes, x: str) -> str:
    """Inverse cosine: a quarter turn less the inverse sine; beyond 1/2 twice that of sqrt((1 - |x|) / 2)."""
    is_large, s, more = _arcsin_parts(lanes, x)
    first, second, _ = _QUARTER[lanes.dtype.itemsize]
    zero = lanes.constant(0.0)
    is_negative = lanes.compare("<", x, zero)
    # The angle is base + factor (s + more): base in quarters, factor 2 or -2 beyond 1/2, else -1 or 1.
    factor = lanes.select(is_large, lanes.constant(2.0), lanes.constant(-1.0))
    factor = lanes.select(is_negative, lanes.neg(factor), factor)
    right = lanes.select(is_large, zero, lanes.constant(1.0))
    base = lanes.select(is_negative, lanes.sub(lanes.constant(2.0), right), right)
    rest = lanes.mul_add(factor, more, lanes.mul(base, lanes.constant(second)))
    start = lanes.mul_add(factor, s, lanes.mul(base, lanes.constant(first)))
    return lanes.add(start, rest)
