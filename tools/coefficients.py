"""Coefficients of the polynomials in engine/pullback/backends/llvm/elementary, computed anew: needs mpmath.

    python tools/coefficients.py            # all of them
    python tools/coefficients.py exp log    # those whose names begin so

Each is the polynomial whose largest weighted error on an interval is least (minimax), found by Lawson's reweighted least
squares on Chebyshev points in 50 digits. The lowest coefficients are then rounded to the format one by one, and what is
left is fitted again after each, so that the later ones take up what rounding the earlier ones did.
Printed are the coefficients and the largest weighted error of the rounded polynomial, as a power of two. Other numbers of
points or rounds end in other last digits, with errors as small.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 50
POINTS = 120
ROUNDS = 40
#: So many of the lowest coefficients are rounded one by one, with a fit after each; the others' rounding is too small to count.
REFITTED = 6

Real = Any
Function = Callable[[Real], Real]


@dataclass(frozen=True)
class Fit:
    """A function, where it is fitted, what an error there weighs, and how many coefficients there are to be."""

    function: Function
    low: Real
    high: Real
    weight: Function
    count: int
    single: bool = False
    paired: bool = False
    """True if the first coefficient is the value at 0, as a sum of two floats."""


def round_to_format(value: Real, *, single: bool) -> float:
    """The nearest float."""
    return float(np.float32(float(value))) if single else float(value)


def minimax(values: list[Real], points: list[Real], weights: list[Real], count: int) -> list[Real]:
    """Coefficients of the polynomial with the least largest weighted error on the points."""
    importance = [mp.mpf(1)] * len(points)
    best: list[Real] = []
    least = mp.inf
    powers = [[x**k for k in range(2 * count - 1)] for x in points]
    for _ in range(ROUNDS):
        matrix, right = mp.zeros(count, count), mp.zeros(count, 1)
        for p, y, w, u in zip(powers, values, weights, importance, strict=True):
            factor = u * w * w
            for k in range(2 * count - 1):
                term = factor * p[k]
                for row in range(max(0, k - count + 1), min(k, count - 1) + 1):
                    matrix[row, k - row] += term
            for row in range(count):
                right[row] += factor * p[row] * y
        solution = list(mp.lu_solve(matrix, right))
        errors = [abs(w * (y - mp.polyval(solution[::-1], x))) for x, y, w in zip(points, values, weights, strict=True)]
        if max(errors) < least:
            least, best = max(errors), solution
        total = sum(u * e for u, e in zip(importance, errors, strict=True))
        importance = [u * e / total for u, e in zip(importance, errors, strict=True)]
    return best


def coefficients(fit: Fit) -> tuple[list[float], Real]:
    """Rounded coefficients, lowest first, and the largest weighted error."""
    middle, half = (mp.mpf(fit.low) + fit.high) / 2, (mp.mpf(fit.high) - fit.low) / 2
    points = [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * POINTS)) for k in range(POINTS)]
    values, weights = [fit.function(x) for x in points], [fit.weight(x) for x in points]
    rounded: list[float] = []
    rest, scaled = list(values), list(weights)
    start = fit.function(mp.mpf(0)) if fit.paired else mp.mpf(0)
    if fit.paired:
        rounded = [float(start)]
        rest = [(y - start) / x for x, y in zip(points, values, strict=True)]
        scaled = [w * x for x, w in zip(points, weights, strict=True)]
    while len(rounded) < fit.count:
        fitted = minimax(rest, points, scaled, fit.count - len(rounded))
        settled = fitted[:1] if len(rounded) < REFITTED else fitted
        for coefficient in settled:
            c = round_to_format(coefficient, single=fit.single)
            rounded.append(c)
            rest = [(y - c) / x for x, y in zip(points, rest, strict=True)]
            scaled = [w * x for x, w in zip(points, scaled, strict=True)]
    exact = [mp.mpf(c) for c in rounded[::-1]]
    if fit.paired:
        exact[-1] = start
        print(f"    {float(start)!r} is less than the first by {float(start - mp.mpf(float(start)))!r}")
    error = max(abs(w * (y - mp.polyval(exact, x))) for x, y, w in zip(points, values, weights, strict=True))
    return rounded, error


@dataclass(frozen=True)
class Quotient:
    """A function of h whose value by h is fitted by a quotient of polynomials in h^2, up to a top, both of which begin with 1."""

    function: Function
    top: Real
    degree: int


def quotient(fit: Quotient) -> tuple[list[float], list[float], Real]:
    """Coefficients of (above - below) / h^2 and of below, lowest first, and the largest relative error before they are rounded.

    The least squares are those of above - f below, divided by f and by the denominator of the round before.
    """
    degree, points = fit.degree, [fit.top / 2 * (1 + mp.cos(mp.pi * (2 * k + 1) / (2 * POINTS))) for k in range(POINTS)]
    values, squares = [fit.function(x) / x for x in points], [x * x for x in points]
    importance, before = [mp.mpf(1)] * POINTS, [mp.mpf(1)] * POINTS
    least, best = mp.inf, mp.zeros(2 * degree, 1)
    for _ in range(ROUNDS):
        matrix, right = mp.zeros(POINTS, 2 * degree), mp.zeros(POINTS, 1)
        for row, (f, z, u, q) in enumerate(zip(values, squares, importance, before, strict=True)):
            weight = mp.sqrt(u) / (f * q)
            for k in range(degree):
                matrix[row, k], matrix[row, degree + k] = weight * z ** (k + 1), -weight * f * z ** (k + 1)
            right[row] = weight * (f - 1)
        solution = mp.lu_solve(matrix.T * matrix, matrix.T * right)
        above, below = ([*list(solution)[first : first + degree][::-1], 1] for first in (0, degree))
        before = [mp.polyval(below, z) for z in squares]
        errors = [abs(mp.polyval(above, z) / q / f - 1) for f, z, q in zip(values, squares, before, strict=True)]
        if max(errors) < least:
            least, best = max(errors), solution
        total = sum(u * e for u, e in zip(importance, errors, strict=True))
        importance = [u * e / total for u, e in zip(importance, errors, strict=True)]
    above, below = list(best)[:degree], list(best)[degree:]
    return [float(a - b) for a, b in zip(above, below, strict=True)], [1.0, *map(float, below)], least


def _one(_: Real) -> Real:
    return mp.mpf(1)


# --- exp.py ---------------------------------------------------------------------------------------------------------
HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0005")


def _after_linear(r: Real) -> Real:
    return (mp.exp(r) - 1 - r) / r**2


def _weight_of_expm1(r: Real) -> Real:
    return r**2 / mp.expm1(r)


# --- log.py ---------------------------------------------------------------------------------------------------------
FAR_LOG = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.001")


def _log_rest(z: Real) -> Real:
    """R of log((1 + s) / (1 - s)) = 2 s + s R(s^2)."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s) / s


def _log_after_square(f: Real) -> Real:
    """P of log(1 + f) = f - f^2 / 2 + f^3 P(f)."""
    return (mp.log1p(f) - f + f**2 / 2) / f**3


# --- hyperbolic.py --------------------------------------------------------------------------------------------------
TANH_NEAR = (mp.log(3) / 2) ** 2 * mp.mpf("1.001")


def _tanh_rest(z: Real) -> Real:
    x = mp.sqrt(z)
    return (mp.tanh(x) - x) / x**3


# --- trigonometric.py -----------------------------------------------------------------------------------------------
EIGHTH_TURN = (mp.pi / 4 * mp.mpf("1.005")) ** 2
TAN_EIGHTH = mp.tan(mp.pi / 8) ** 2 * mp.mpf("1.001")


def _sin_rest(z: Real) -> Real:
    r = mp.sqrt(z)
    return (mp.sin(r) - r) / r**3


def _cos_rest(z: Real) -> Real:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def _tan_rest(z: Real) -> Real:
    r = mp.sqrt(z)
    return (mp.tan(r) - r) / r**3


def _atan_rest(z: Real) -> Real:
    t = mp.sqrt(z)
    return (mp.atan(t) - t) / t**3


def _asin_rest(z: Real) -> Real:
    x = mp.sqrt(z)
    return (mp.asin(x) - x) / x**3


# --- error_function.py ----------------------------------------------------------------------------------------------
def _erf_near(z: Real) -> Real:
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


def _erfcx(x: Real) -> Real:
    return mp.exp(x * x) * mp.erfc(x)


def _erfc_far(q: Real) -> Real:
    x = 3 * (1 + q) / (1 - q)
    return _erfcx(x) * (x + 3)


def _cdf_far(q: Real) -> Real:
    x = 4 * (1 + q) / (1 - q)
    return _erfcx(x / mp.sqrt(2)) * (x + 4) / 2


def _placed(x: Real, centre: int) -> Real:
    return (mp.mpf(x) - centre) / (mp.mpf(x) + centre)


def _cdf_near(z: Real) -> Real:
    x = mp.sqrt(z)
    return (mp.ncdf(x) - mp.mpf(1) / 2) / x


def _weight_of_cdf(z: Real) -> Real:
    """Relative to the value at -x, where it is smaller."""
    return mp.sqrt(z) / mp.ncdf(-mp.sqrt(z))


def _log_erfc(t: Real) -> Real:
    return mp.log(mp.erfc(t + 2))


def _weight_of_log_erfc(t: Real) -> Real:
    return mp.erfc(t + 2) / mp.erf(t + 2)


def _cbrt_near(t: Real) -> Real:
    return mp.cbrt(t)


FITS: dict[str, Fit] = {
    "exp_single": Fit(_after_linear, -HALF_LN2, HALF_LN2, _weight_of_expm1, 5, single=True),
    "exp_double": Fit(_after_linear, -HALF_LN2, HALF_LN2, _weight_of_expm1, 11),
    "exp_between": Fit(_after_linear, -HALF_LN2, HALF_LN2, _weight_of_expm1, 6),
    "exp2_single": Fit(lambda r: (2**r - 1) / r, mp.mpf(-0.5), mp.mpf(0.5), lambda r: r / 2**r, 6, single=True),
    "exp2_double": Fit(lambda r: (2**r - 1) / r, mp.mpf(-0.5), mp.mpf(0.5), lambda r: r / 2**r, 12),
    "log_single": Fit(
        _log_after_square, mp.sqrt(0.5) - 1, mp.sqrt(2) - 1, lambda f: f**3 / mp.log1p(f), 8, single=True
    ),
    "log_double": Fit(lambda z: _log_rest(z) / z, 0, FAR_LOG, lambda z: z, 7),
    "log_between": Fit(lambda z: _log_rest(z) / z, 0, FAR_LOG, lambda z: z, 4),
    "tanh_single": Fit(_tanh_rest, 0, TANH_NEAR, lambda z: z, 4, single=True),
    "sin_single": Fit(_sin_rest, 0, EIGHTH_TURN, lambda z: z, 3, single=True),
    "sin_double": Fit(_sin_rest, 0, EIGHTH_TURN, lambda z: z, 6),
    "cos_single": Fit(_cos_rest, 0, EIGHTH_TURN, lambda z: z * z, 3, single=True),
    "cos_double": Fit(_cos_rest, 0, EIGHTH_TURN, lambda z: z * z, 6),
    "tan_single": Fit(_tan_rest, 0, EIGHTH_TURN, lambda z: z, 7, single=True),
    "atan_single": Fit(_atan_rest, 0, 1, lambda z: z, 9, single=True),
    "atan_double": Fit(_atan_rest, 0, TAN_EIGHTH, lambda z: z, 11),
    "asin_single": Fit(_asin_rest, 0, mp.mpf(0.25), lambda z: z, 5, single=True),
    "asin_double": Fit(_asin_rest, 0, mp.mpf(0.25), lambda z: z, 13),
    "erf_single": Fit(_erf_near, 0, 1, _one, 7, single=True),
    "erf_double": Fit(_erf_near, 0, 1, _one, 13),
    "erfc_far": Fit(_erfc_far, _placed(0.75, 3), _placed(28, 3), lambda q: 1 / _erfc_far(q), 21, paired=True),
    "erfc_far_between": Fit(_erfc_far, _placed(0.75, 3), _placed(11, 3), lambda q: 1 / _erfc_far(q), 11),
    "cdf_near": Fit(_cdf_near, 0, 1, _weight_of_cdf, 12),
    "cdf_far": Fit(_cdf_far, _placed(1, 4), _placed(39, 4), lambda q: 1 / _cdf_far(q), 21, paired=True),
    "cdf_far_between": Fit(_cdf_far, _placed(1, 4), _placed(15, 4), lambda q: 1 / _cdf_far(q), 10),
    "log_erfc_single": Fit(_log_erfc, mp.mpf(-1), mp.mpf(2), _weight_of_log_erfc, 8, single=True),
    "log_erfc_double": Fit(_log_erfc, mp.mpf(-1), mp.mpf(4), _weight_of_log_erfc, 17),
    "log_fine": Fit(lambda z: (_log_rest(z) / z - mp.mpf(2) / 3) / z, 0, FAR_LOG, lambda z: z * z / 2, 8),
    "cbrt_near": Fit(_cbrt_near, mp.mpf("0.353"), mp.mpf("2.829"), lambda t: 1 / mp.cbrt(t), 5),
}


QUOTIENTS = {"tanh_double": Quotient(mp.tanh, mp.mpf("0.55"), 3)}


def main(names: list[str]) -> None:
    """Print those that were asked for."""
    for name, fit in FITS.items():
        if not names or any(name.startswith(wanted) for wanted in names):
            rounded, error = coefficients(fit)
            print(f"{name}: 2**{float(mp.log(error, 2)):.2f}", flush=True)
            print("    " + ", ".join(repr(float(np.float32(c))) if fit.single else repr(c) for c in rounded))
            if fit.single:
                print("    " + ", ".join(str(np.float32(c)) for c in rounded))
    for name, one in QUOTIENTS.items():
        if not names or any(name.startswith(wanted) for wanted in names):
            above, below, error = quotient(one)
            print(f"{name}: 2**{float(mp.log(error, 2)):.2f}\n    {above}\n    {below}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
