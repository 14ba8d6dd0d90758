"""The error function, its complement, and the distribution function of the normal law.

Near 0 they are odd polynomials and a constant. Far from it the tail is e^(-x^2) g(x), where g(x) (x + k) is a polynomial in
q = (x - k) / (x + k): that maps the half-line to an interval, on which it is smooth (Shepherd and Laframboise, Mathematics
of Computation 36, 1981). The square is taken with its rounding error, which counts: it is as large as 700. Singles go
through doubles, but for erf, whose tail is small beside 1: there erfc is e to a polynomial.
"""

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.elementary.exp import exp, exp_between
from pullback.backends.llvm.elementary.float_formats import at_least, at_most, is_single, polynomial
from pullback.dataclass import dataclass

# erf(x) / x - 1 in z = x^2 <= 1; relative error of erf below 2**-29.5 and 2**-56.1 (tools/coefficients.py).
_NEAR_SINGLE = (0.12837917, -0.3761263, 0.11283618, -0.026855126, 0.005190734, -0.00080307614, 7.920368e-05)
_NEAR_DOUBLE = (
    0.1283791670955126,
    -0.37612638903184104,
    0.11283791670971637,
    -0.026866170648183908,
    0.005223977654628667,
    -0.0008548328669688011,
    0.00012055391794869528,
    -1.4927031121028172e-05,
    1.64836709434904e-06,
    -1.6586790057032033e-07,
    1.6224405210462402e-08,
    -1.7320936540912222e-09,
    1.5851800426487424e-10,
)


@dataclass(frozen=True, slots=True)
class _Tail:
    """A tail e^(-factor x^2) g(x): the centre k, and coefficients of g(x) (x + k) in q = (x - k) / (x + k)."""

    factor: float
    centre: float
    limit: float
    """The x from which the tail is 0 in the format of the result."""
    coefficients: tuple[float, ...]
    first_rest: float = 0.0
    """The error of the first coefficient."""


# Relative errors below 2**-56.8 and 2**-32.9 for 0.75 <= x, up to 28 and 11.
_ERFC = _Tail(
    1.0,
    3.0,
    28.0,
    (
        1.0740069070883398,
        -0.8833944531698837,
        0.5902283571041016,
        -0.3104672619005495,
        0.11952776128730357,
        -0.026827234625289072,
        -0.0012124166273022683,
        0.0030340620176665025,
        -0.0005483096970553247,
        -0.00027677802652953815,
        0.00010756160956390686,
        3.0399309957893304e-05,
        -1.7471726180352856e-05,
        -4.753526673143358e-06,
        2.771237506820893e-06,
        1.007828408104682e-06,
        -4.2450857004195464e-07,
        -2.4116045662136175e-07,
        7.102478647758994e-08,
        4.7098882419678586e-08,
        -1.7088374622275555e-08,
    ),
    -8.807445678337799e-17,
)
_ERFC_BETWEEN = _Tail(
    1.0,
    3.0,
    11.0,
    (
        1.0740069070948324,
        -0.8833944518530783,
        0.5902283548899157,
        -0.3104673399398757,
        0.11952785225850117,
        -0.02682594402628669,
        -0.0012136343919641058,
        0.003025325614095488,
        -0.000541371705153752,
        -0.00025054408815175337,
        8.986977032449538e-05,
    ),
)
# Relative errors below 2**-56.8 and 2**-33.0 for 1 <= x, up to 39 and 15.
_CDF = _Tail(
    0.5,
    4.0,
    39.0,
    (
        0.7552851304157515,
        -0.6078966419718922,
        0.3871374007422133,
        -0.18652185795964102,
        0.060396574891037766,
        -0.007540188967552745,
        -0.003479692370156432,
        0.001630818476315374,
        0.0001333443467699233,
        -0.0002310951640194517,
        -1.908465740633693e-06,
        3.51463289916135e-05,
        7.171281652862074e-07,
        -5.927319345447942e-06,
        -6.285293066716728e-07,
        1.0401208915845712e-06,
        2.6260970500147017e-07,
        -1.8170114212451475e-07,
        -6.511239577742497e-08,
        3.047159350372751e-08,
        2.4375496966908772e-09,
    ),
    -2.2175033409973908e-17,
)
_CDF_BETWEEN = _Tail(
    0.5,
    4.0,
    15.0,
    (
        0.7552851303886097,
        -0.60789664042913,
        0.3871374043732539,
        -0.1865219496491137,
        0.06039649854622171,
        -0.0075386758265495665,
        -0.0034791368038692644,
        0.0016206285081323058,
        0.0001316865442729954,
        -0.00020068967723625318,
    ),
)
# (Phi(x) - 1/2) / x in z = x^2 <= 1; error below 2**-58.5 of Phi(-x).
_CDF_NEAR = (
    0.3989422804014327,
    -0.0664903800669074,
    0.009973557010082363,
    -0.0011873282160020382,
    0.00011543469090274359,
    -9.44466902268433e-06,
    6.660013929926722e-07,
    -4.1279670502177284e-08,
    2.3309060862378042e-09,
    -1.5212819399598603e-10,
    2.0333702763836973e-11,
    -2.7768262475467154e-12,
)
# log erfc(2 + t) for 1 <= 2 + t <= 4 and 6; errors of erf below 2**-30.4 and 2**-54.8.
_LOG_TAIL_SINGLE = (
    -5.364941,
    -4.41816,
    -0.92375284,
    -0.01647974,
    0.0035550192,
    -0.00071726216,
    0.00016799296,
    -8.475651e-06,
)
_LOG_TAIL_DOUBLE = (
    -5.364941264616633,
    -4.418160805994332,
    -0.9237508418240129,
    -0.016465118140539983,
    0.003570756343418573,
    -0.0007323993524925113,
    0.00013530938218198331,
    -2.07065398849256e-05,
    1.952002595989064e-06,
    2.0380024785061495e-07,
    -1.7287584401350772e-07,
    5.7665312790932924e-08,
    -1.4233437095611618e-08,
    2.6229434526031567e-09,
    -1.5262371466836315e-10,
    -8.479315664519182e-11,
    1.7566812912895e-11,
)


def _through_doubles(lanes: Lanes, x: str) -> tuple[Lanes, str]:
    double = lanes.as_dtype("f8")
    return double, lanes.convert(x, double)


def _erf_near(lanes: Lanes, x: str) -> str:
    z = lanes.mul(x, x)
    return lanes.mul_add(x, polynomial(lanes, z, _NEAR_SINGLE if is_single(lanes) else _NEAR_DOUBLE), x)


def erf(lanes: Lanes, x: str) -> str:
    """The error function: its series up to 1, beyond 1 - erfc |x|."""
    a = lanes.absolute(x)
    t = lanes.sub(at_most(lanes, a, 4.0 if is_single(lanes) else 6.0), lanes.constant(2.0))
    t = at_least(lanes, t, -1.0)
    exponent = polynomial(lanes, t, _LOG_TAIL_SINGLE if is_single(lanes) else _LOG_TAIL_DOUBLE)
    far = lanes.sub(lanes.constant(1.0), exp(lanes, exponent, above=False))
    is_near = lanes.compare("<", a, lanes.constant(1.0))
    return lanes.select(is_near, _erf_near(lanes, x), lanes.copysign(far, x))


def _tail(lanes: Lanes, a: str, tail: _Tail) -> str:
    """The tail at a positive a."""
    rounding = lanes.rounding_each()
    a = at_most(lanes, a, tail.limit)
    centre = lanes.constant(tail.centre)
    above, below = rounding.sub(a, centre), rounding.add(a, centre)
    below_rest = rounding.sub(a, rounding.sub(below, centre))
    inverse = lanes.div(lanes.constant(1.0), below)
    q = rounding.mul(above, inverse)
    missing = lanes.mul_add(lanes.neg(q), below_rest, lanes.fma(lanes.neg(q), below, above))
    q = lanes.mul_add(missing, inverse, q)
    # The polynomial, its quotient by a + k and the square, each with what rounding it has lost.
    first, second, *others = tail.coefficients
    series = polynomial(lanes, q, others)
    slope, slope_rest = _next(lanes, series, q, second)
    value, value_rest = _next(lanes, slope, q, first)
    value_rest = lanes.mul_add(slope_rest, q, lanes.add(value_rest, lanes.constant(tail.first_rest)))
    weight = rounding.mul(value, inverse)
    weight_rest = lanes.mul_add(value_rest, inverse, lanes.fma(value, inverse, lanes.neg(weight)))
    inverse_rest = lanes.mul_add(
        lanes.neg(inverse), below_rest, lanes.fma(lanes.neg(inverse), below, lanes.constant(1.0))
    )
    half = rounding.mul(a, lanes.constant(-tail.factor))
    square = rounding.mul(half, a)
    square_rest = lanes.fma(half, a, lanes.neg(square))
    change = lanes.add(inverse_rest, square_rest)
    return exp(lanes, square, low=change, times=(weight, weight_rest), above=False)


def _tail_between(lanes: Lanes, a: str, tail: _Tail) -> str:
    """The tail in double precision, good enough for singles."""
    a = at_most(lanes, a, tail.limit)
    centre = lanes.constant(tail.centre)
    inverse = lanes.div(lanes.constant(1.0), lanes.add(a, centre))
    series = polynomial(lanes, lanes.mul(lanes.sub(a, centre), inverse), tail.coefficients)
    square = lanes.mul(lanes.mul(a, lanes.constant(-tail.factor)), a)
    return exp_between(lanes, square, times=lanes.mul(inverse, series))


def _next(lanes: Lanes, value: str, q: str, coefficient: float) -> tuple[str, str]:
    """A step of Horner's rule, value q + coefficient, and what rounding it loses; the coefficient is the larger."""
    larger = lanes.constant(coefficient)
    total = lanes.fma(value, q, larger)
    return total, lanes.fma(value, q, lanes.rounding_each().sub(larger, total))


def erfc(lanes: Lanes, x: str) -> str:
    """1 - erf(x), with all digits where it is small."""
    if is_single(lanes):
        double, wide = _through_doubles(lanes, x)
        tail = _tail_between(double, double.absolute(wide), _ERFC_BETWEEN)
        return double.convert(_erfc(double, wide, tail), lanes)
    return _erfc(lanes, x, _tail(lanes, lanes.absolute(x), _ERFC))


def _erfc(lanes: Lanes, x: str, y: str) -> str:
    """The complementary error function from its tail y at |x|."""
    a = lanes.absolute(x)
    far = lanes.select(lanes.compare("<", x, lanes.constant(0.0)), lanes.sub(lanes.constant(2.0), y), y)
    # 1 - x is exact where the result is small, and x times the polynomial is small beside it.
    one = lanes.constant(1.0)
    series = polynomial(lanes, lanes.mul(x, x), _NEAR_DOUBLE)
    near = lanes.mul_add(lanes.neg(x), series, lanes.sub(one, x))
    return lanes.select(lanes.compare("<", a, lanes.constant(0.75)), near, far)


def normal_cdf(lanes: Lanes, x: str) -> str:
    """The distribution function of the normal law, erfc(-x / sqrt 2) / 2."""
    if is_single(lanes):
        double, wide = _through_doubles(lanes, x)
        tail = _tail_between(double, double.absolute(wide), _CDF_BETWEEN)
        return double.convert(_normal_cdf(double, wide, tail), lanes)
    return _normal_cdf(lanes, x, _tail(lanes, lanes.absolute(x), _CDF))


def _normal_cdf(lanes: Lanes, x: str, y: str) -> str:
    """The normal distribution function from the tail y at |x|."""
    a, one = lanes.absolute(x), lanes.constant(1.0)
    far = lanes.select(lanes.compare("<", x, lanes.constant(0.0)), y, lanes.sub(one, y))
    first, *others = _CDF_NEAR
    z = lanes.mul(x, x)
    start = lanes.mul_add(x, lanes.constant(first), lanes.constant(0.5))
    near = lanes.mul_add(lanes.mul(x, z), polynomial(lanes, z, others), start)
    return lanes.select(lanes.compare("<", a, one), near, far)
