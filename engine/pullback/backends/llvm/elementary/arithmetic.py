"""Choices, comparisons and divisions: extrema, signs, whole quotients and what they leave over, shifts.

NumPy's meaning to the letter: maximum and minimum keep NaN, fmax and fmin pass it over; a remainder has the sign of the
divisor; integers divided by zero give 0; bits shifted past the end are gone.
"""

from pullback.backends.llvm.builder.lanes import Lanes


def both(lanes: Lanes, operation: str, a: str, b: str) -> str:
    """An instruction on integers or truth values."""
    return lanes.function.value(f"{operation} {lanes.type} {a}, {b}")


# --- extrema --------------------------------------------------------------------------------------------------------
def extremum(lanes: Lanes, relation: str, a: str, b: str) -> str:
    """The one of two numbers that stands in a relation (">" or "<") to the other; NaN where one is.

    Where a comparison fails b is taken, so a NaN in b comes through by itself, and one in a is put in. A constant a is
    none: then comparison and choice are one instruction.
    """
    if lanes.dtype.kind == "b":
        return both(lanes, "or" if relation == ">" else "and", a, b)
    if lanes.known(b) is not None:
        a, b = b, a
    chosen = lanes.select(lanes.compare(relation, a, b), a, b)
    if not lanes.is_float or _is_number(lanes, a):
        return chosen
    return lanes.select(lanes.is_nan(a), a, chosen)


def extremum_of_numbers(lanes: Lanes, relation: str, a: str, b: str) -> str:
    """Extremum that ignores NaN: NaN only where both operands are."""
    if not lanes.is_float:
        return extremum(lanes, relation, a, b)
    if _is_number(lanes, a):
        a, b = b, a
    chosen = lanes.select(lanes.compare(relation, a, b), a, b)
    return chosen if _is_number(lanes, b) else lanes.select(lanes.is_nan(b), a, chosen)


def _is_number(lanes: Lanes, value: str) -> bool:
    known = lanes.known(value)
    return known is not None and known == known  # noqa: PLR0124 - NaN alone differs from itself


# --- signs ----------------------------------------------------------------------------------------------------------
def absolute(lanes: Lanes, x: str) -> str:
    """Magnitude; that of the least integer is itself."""
    if lanes.is_float:
        return lanes.absolute(x)
    if lanes.dtype.kind == "b":
        return x
    return lanes.select(lanes.compare("<", x, lanes.constant(0)), lanes.neg(x), x)


def sign(lanes: Lanes, x: str) -> str:
    """-1, 0 or 1; NaN of NaN."""
    zero, one = lanes.constant(0), lanes.constant(1)
    rest = lanes.select(lanes.compare("==", x, zero), zero, x) if lanes.is_float else zero
    below = lanes.select(lanes.compare("<", x, zero), lanes.constant(-1), rest)
    return lanes.select(lanes.compare(">", x, zero), one, below)


def signbit(lanes: Lanes, x: str) -> str:
    """True if the bit of the sign is set."""
    return lanes.function.value(f"icmp slt {lanes.bits_type} {lanes.bits(x)}, {lanes.bits_constant(0)}")


def heaviside(lanes: Lanes, x: str, at_zero: str) -> str:
    """0 below zero, 1 above, in between what is given; NaN of NaN."""
    zero = lanes.constant(0)
    y = lanes.select(lanes.compare("<", x, zero), zero, x)
    y = lanes.select(lanes.compare(">", x, zero), lanes.constant(1), y)
    return lanes.select(lanes.compare("==", x, zero), at_zero, y)


# --- questions ------------------------------------------------------------------------------------------------------
def is_nan(lanes: Lanes, x: str) -> str:
    """True if it is not a number."""
    return lanes.is_nan(x) if lanes.is_float else lanes.as_dtype("?").constant(0)


def is_infinite(lanes: Lanes, x: str) -> str:
    """True if it is an infinity."""
    if not lanes.is_float:
        return lanes.as_dtype("?").constant(0)
    return lanes.compare("==", lanes.absolute(x), lanes.constant(float("inf")))


def is_finite(lanes: Lanes, x: str) -> str:
    """True if it is neither infinite nor NaN."""
    if not lanes.is_float:
        return lanes.as_dtype("?").constant(1)
    return lanes.compare("<", lanes.absolute(x), lanes.constant(float("inf")))


def truth(lanes: Lanes, x: str) -> str:
    """True if it differs from zero; NaN does."""
    return lanes.convert(x, lanes.as_dtype("?"))


# --- quotients of floats --------------------------------------------------------------------------------------------
def inverse(lanes: Lanes, x: str) -> str:
    """1 / x, but 0 of 0."""
    zero = lanes.constant(0)
    return lanes.select(lanes.compare("==", x, zero), zero, lanes.div(lanes.constant(1), x))


# --- quotients of integers ------------------------------------------------------------------------------------------
def _safe_divisor(lanes: Lanes, a: str, b: str) -> tuple[str, str]:
    """A divisor that does not trap, and a mask of the lanes in which the quotient means nothing.

    0 divides into 0, with remainder 0. The least integer by -1 is itself, as by 1.
    """
    zero = lanes.compare("==", b, lanes.constant(0))
    least = lanes.constant(-(2 ** (8 * lanes.dtype.itemsize - 1)))
    outgrows = lanes.function.value(
        f"and {lanes.mask_type} {lanes.compare('==', a, least)}, {lanes.compare('==', b, lanes.constant(-1))}"
    )
    stops = lanes.function.value(f"or {lanes.mask_type} {zero}, {outgrows}")
    return lanes.select(stops, lanes.constant(1), b), zero


def floor_divide_integers(lanes: Lanes, a: str, b: str) -> str:
    """The quotient rounded down; 0 of a division by zero."""
    divisor, zero = _safe_divisor(lanes, a, b)
    quotient, rest = both(lanes, "sdiv", a, divisor), both(lanes, "srem", a, divisor)
    lower = lanes.sub(quotient, lanes.constant(1))
    quotient = lanes.select(_rounds_up(lanes, rest, divisor), lower, quotient)
    return lanes.select(zero, lanes.constant(0), quotient)


def remainder_of_integers(lanes: Lanes, a: str, b: str) -> str:
    """The remainder of `floor_divide_integers`; 0 of a division by zero."""
    divisor, zero = _safe_divisor(lanes, a, b)
    rest = both(lanes, "srem", a, divisor)
    rest = lanes.select(_rounds_up(lanes, rest, divisor), lanes.add(rest, divisor), rest)
    return lanes.select(zero, lanes.constant(0), rest)


def fmod_of_integers(lanes: Lanes, a: str, b: str) -> str:
    """The remainder of a quotient rounded towards zero; 0 of a division by zero."""
    divisor, zero = _safe_divisor(lanes, a, b)
    return lanes.select(zero, lanes.constant(0), both(lanes, "srem", a, divisor))


def _rounds_up(lanes: Lanes, rest: str, divisor: str) -> str:
    """Mask of the lanes in which truncation and floor differ: the rest is not 0, and its sign is not the divisor's."""
    zero = lanes.constant(0)
    differ = lanes.compare("<", both(lanes, "xor", rest, divisor), zero)
    return lanes.function.value(f"and {lanes.mask_type} {lanes.compare('!=', rest, zero)}, {differ}")


# --- shifts ---------------------------------------------------------------------------------------------------------
def left_shift(lanes: Lanes, a: str, count: str) -> str:
    """Bits moved up; 0 where they are moved past the end."""
    return lanes.select(_is_inside(lanes, count), both(lanes, "shl", a, _clipped(lanes, count)), lanes.constant(0))


def right_shift(lanes: Lanes, a: str, count: str) -> str:
    """Bits moved down, the sign with them; what is left past the end is the sign."""
    last = lanes.constant(8 * lanes.dtype.itemsize - 1)
    return both(lanes, "ashr", a, lanes.select(_is_inside(lanes, count), count, last))


def _is_inside(lanes: Lanes, count: str) -> str:
    return lanes.function.value(f"icmp ult {lanes.type} {count}, {lanes.constant(8 * lanes.dtype.itemsize)}")


def _clipped(lanes: Lanes, count: str) -> str:
    return lanes.select(_is_inside(lanes, count), count, lanes.constant(0))


# --- quotients of floats --------------------------------------------------------------------------------------------
def fmod(lanes: Lanes, a: str, b: str) -> str:
    """The remainder of a quotient rounded towards zero, exactly, with the sign of a.

    Where the quotient is below 2**digits its whole part is right or one too large, and a - q b is exact either way, with a
    fused multiply-add. Elsewhere, and where b is infinite, it is the C library's, lane by lane.
    """
    function = lanes.function
    ratio = lanes.div(a, b)
    q = lanes.intrinsic("trunc", ratio)
    rest = lanes.fma(lanes.neg(q), b, a)
    too_far = signbit(lanes, lanes.from_bits(lanes.on_bits("xor", lanes.bits(rest), lanes.bits(a))))
    corrected = lanes.rounding_each().add(rest, lanes.copysign(b, a))
    too_far = function.value(f"and {lanes.mask_type} {too_far}, {lanes.compare('!=', rest, lanes.constant(0))}")
    rest = lanes.copysign(lanes.select(too_far, corrected, rest), a)
    limit = lanes.constant(2.0 ** (22 if lanes.dtype.itemsize == 4 else 51))
    is_near = lanes.compare("<", lanes.absolute(ratio), limit)
    is_near = function.value(
        f"and {lanes.mask_type} {is_near}, {lanes.compare('<', lanes.absolute(b), lanes.constant(float('inf')))}"
    )
    result = function.slot(lanes.type, rest)
    is_far = function.value(f"xor {lanes.mask_type} {is_near}, {lanes.as_dtype('?').constant(1)}")
    with function.when(lanes.any_lane(is_far)):
        exact = function.value(f"frem {lanes.type} {a}, {b}")
        function.store(lanes.type, lanes.select(is_far, exact, rest), result)
    return function.load(lanes.type, result)


def _divide(lanes: Lanes, a: str, b: str) -> tuple[str, str, str]:
    """fmod, the remainder with the sign of b, and where they differ by b."""
    zero = lanes.constant(0)
    rest = fmod(lanes, a, b)
    is_rest = lanes.compare("!=", rest, zero)  # also of NaN
    differ = lanes.function.value(
        f"xor {lanes.mask_type} {lanes.compare('<', b, zero)}, {lanes.compare('<', rest, zero)}"
    )
    differ = lanes.function.value(f"and {lanes.mask_type} {is_rest}, {differ}")
    moved = lanes.select(differ, lanes.add(rest, b), rest)
    return rest, lanes.select(is_rest, moved, lanes.copysign(zero, b)), differ


def remainder_of_floats(lanes: Lanes, a: str, b: str) -> str:
    """The remainder of the quotient rounded down, with the sign of b."""
    return _divide(lanes, a, b)[1]


def floor_divide_floats(lanes: Lanes, a: str, b: str) -> str:
    """The quotient rounded down, as NumPy makes it: (a - fmod(a, b)) / b, one less where the signs differ, and rounded."""
    rounding, zero, one = lanes.rounding_each(), lanes.constant(0), lanes.constant(1)
    rest, _, differ = _divide(lanes, a, b)
    quotient = lanes.div(rounding.sub(a, rest), b)
    quotient = lanes.select(differ, rounding.sub(quotient, one), quotient)
    lower = lanes.intrinsic("floor", quotient)
    is_next = lanes.compare(">", rounding.sub(quotient, lower), lanes.constant(0.5))
    whole = lanes.select(is_next, rounding.add(lower, one), lower)
    plain = lanes.div(a, b)
    whole = lanes.select(lanes.compare("!=", quotient, zero), whole, lanes.copysign(zero, plain))
    return lanes.select(lanes.compare("==", b, zero), plain, whole)
