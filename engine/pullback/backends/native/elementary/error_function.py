"""The error function, its complement, and the distribution function of the normal law.

Near 0 they are odd polynomials and a constant. Far from it the tail is e^(-x^2) g(x), where g(x) (x + k) is a polynomial in
q = (x - k) / (x + k): that maps the half-line to an interval, on which it is smooth (Shepherd and Laframboise, Mathematics
of Computation 36, 1981). The square is taken with its rounding error, which counts: it is as large as 700. Singles go
through doubles, but for erf, whose tail is small beside 1: there erfc is e to a polynomial.
"""

from dataclasses import dataclass

from pullback.backends.native.elementary.exp import exp
from pullback.backends.native.elementary.formats import at_least, at_most, is_single, polynomial
from pullback.backends.native.writing.lanes import Lanes

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
    """Where the tail is 0."""
    coefficients: tuple[float, ...]


# Relative errors below 2**-53.4 and 2**-32.1 for 1/2 <= x, up to 28 and 11.
_ERFC = _Tail(
    1.0,
    3.0,
    28.0,
    (
        1.0740069070883398,
        -0.8833944531698835,
        0.5902283571040681,
        -0.3104672619005586,
        0.11952776128941499,
        -0.026827234625714572,
        -0.0012124166789764948,
        0.0030340620399136363,
        -0.0005483090532341978,
        -0.00027677840013552095,
        0.00010755698727917025,
        3.040252904285185e-05,
        -1.7451446629337e-05,
        -4.769732488050383e-06,
        2.716009607619231e-06,
        1.0577169458316036e-06,
        -3.339764009402045e-07,
        -3.3444984096557344e-07,
        -8.061878686171035e-09,
        1.4543790308969573e-07,
        4.321182517403659e-09,
        -4.531416668553161e-08,
        9.773687173774705e-09,
    ),
)
_ERFC_BETWEEN = _Tail(
    1.0,
    3.0,
    11.0,
    (
        1.0740069072680491,
        -0.8833944508034739,
        0.5902283277329123,
        -0.31046737180185296,
        0.11952850188267215,
        -0.026825717757700276,
        -0.0012189353326449185,
        0.0030248786352239172,
        -0.0005239534230554514,
        -0.00025051080256557683,
        6.996105554801792e-05,
    ),
)
# Relative errors below 2**-54.9 and 2**-31.9 for 0.7 <= x, up to 39 and 15.
_CDF = _Tail(
    0.5,
    4.0,
    39.0,
    (
        0.7552851304157515,
        -0.6078966419718922,
        0.38713740074220615,
        -0.18652185795964046,
        0.060396574891468546,
        -0.007540188967620302,
        -0.0034796923804772777,
        0.0016308184784817846,
        0.0001333444750943467,
        -0.00023109519619131944,
        -1.9094091208370828e-06,
        3.514660705776524e-05,
        7.215267594384783e-07,
        -5.928904944653034e-06,
        -6.419020816652426e-07,
        1.046354836304766e-06,
        2.885263198894022e-07,
        -1.9790057375843122e-07,
        -9.365521608524952e-08,
        5.49647661391185e-08,
        1.3934977700268422e-08,
        -1.599157513658814e-08,
        3.7176326108107904e-09,
    ),
)
_CDF_BETWEEN = _Tail(
    0.5,
    4.0,
    15.0,
    (
        0.7552851305005197,
        -0.6078966391815742,
        0.38713738573335454,
        -0.1865219950550578,
        0.06039696305276975,
        -0.007538251772445537,
        -0.0034830359867147613,
        0.0016192227628734296,
        0.00014474435971257614,
        -0.00019920083949747288,
        -1.5097075018629102e-05,
    ),
)
# (Phi(x) - 1/2) / x in z = x^2 <= 1/2; relative error below 2**-53.8.
_CDF_NEAR = (
    0.3989422804014327,
    -0.06649038006691334,
    0.00997355701044964,
    -0.0011873282238614926,
    0.00011543477283467239,
    -9.445143821032132e-06,
    6.676099794600201e-07,
    -4.44468291791945e-08,
    5.682486543999305e-09,
    -1.6134176043705585e-09,
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
    each = lanes.rounding_each()
    a = at_most(lanes, a, tail.limit)
    centre = lanes.constant(tail.centre)
    above, below = each.sub(a, centre), each.add(a, centre)
    below_rest = each.sub(a, each.sub(below, centre))
    inverse = lanes.div(lanes.constant(1.0), below)
    q = each.mul(above, inverse)
    missing = lanes.mul_add(lanes.neg(q), below_rest, lanes.fma(lanes.neg(q), below, above))
    q = lanes.mul_add(missing, inverse, q)
    weight = lanes.mul(inverse, polynomial(lanes, q, tail.coefficients))
    # What rounding has taken from a + k and from the square, as a relative change of the result.
    half = each.mul(a, lanes.constant(-tail.factor))
    square = each.mul(half, a)
    square_rest = lanes.fma(half, a, lanes.neg(square))
    change = lanes.mul_add(lanes.neg(inverse), below_rest, square_rest)
    return exp(lanes, square, low=change, times=weight, above=False)


def erfc(lanes: Lanes, x: str) -> str:
    """1 - erf(x), with all digits where it is small."""
    if is_single(lanes):
        double, wide = _through_doubles(lanes, x)
        return double.convert(_erfc(double, wide, _ERFC_BETWEEN), lanes)
    return _erfc(lanes, x, _ERFC)


def _erfc(lanes: Lanes, x: str, tail: _Tail) -> str:
    a = lanes.absolute(x)
    y = _tail(lanes, a, tail)
    far = lanes.select(lanes.compare("<", x, lanes.constant(0.0)), lanes.sub(lanes.constant(2.0), y), y)
    # 1 - x is exact where the result is small, and x times the polynomial is small beside it.
    one = lanes.constant(1.0)
    series = polynomial(lanes, lanes.mul(x, x), _NEAR_DOUBLE)
    near = lanes.mul_add(lanes.neg(x), series, lanes.sub(one, x))
    return lanes.select(lanes.compare("<", a, one), near, far)


def normal_cdf(lanes: Lanes, x: str) -> str:
    """The distribution function of the normal law, erfc(-x / sqrt 2) / 2."""
    if is_single(lanes):
        double, wide = _through_doubles(lanes, x)
        return double.convert(_normal_cdf(double, wide, _CDF_BETWEEN), lanes)
    return _normal_cdf(lanes, x, _CDF)


def _normal_cdf(lanes: Lanes, x: str, tail: _Tail) -> str:
    a, one = lanes.absolute(x), lanes.constant(1.0)
    y = _tail(lanes, a, tail)
    far = lanes.select(lanes.compare("<", x, lanes.constant(0.0)), y, lanes.sub(one, y))
    first, *others = _CDF_NEAR
    z = lanes.mul(x, x)
    start = lanes.mul_add(x, lanes.constant(first), lanes.constant(0.5))
    near = lanes.mul_add(lanes.mul(x, z), polynomial(lanes, z, others), start)
    return lanes.select(lanes.compare("<", a, one), near, far)
