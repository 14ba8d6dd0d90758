"""Circular and hyperbolic functions, their inverses, and the plane: angle and distance."""

from math import pi
from typing import Any

import numpy as np

from pullback.core.cases import away_from, cases, normal, positive
from pullback.core.kinds import Scalar
from pullback.core.types import dtype_of

sin = Scalar("sin", np.sin, lambda v, x, y: v * np.cos(x))
cos = Scalar("cos", np.cos, lambda v, x, y: -(v * np.sin(x)))
tan = Scalar("tan", np.tan, lambda v, x, y: v * (1 + np.square(y)))
sinh = Scalar("sinh", np.sinh, lambda v, x, y: v * np.cosh(x))
cosh = Scalar("cosh", np.cosh, lambda v, x, y: v * np.sinh(x))
tanh = Scalar("tanh", np.tanh, lambda v, x, y: v * (1 - np.square(y)))

arcsin = Scalar("arcsin", np.arcsin, lambda v, x, y: v / np.sqrt(1 - np.square(x)))
arccos = Scalar("arccos", np.arccos, lambda v, x, y: -(v / np.sqrt(1 - np.square(x))))
arctan = Scalar("arctan", np.arctan, lambda v, x, y: v / (1 + np.square(x)))
arcsinh = Scalar(
    "arcsinh",
    np.arcsinh,
    lambda v, x, y: (
        v / (np.sqrt(1 + x * x) if dtype_of(x).kind == "c" else np.hypot(1, x))
    ),  # whose squares overflow late
)
# Two roots, not one of the product: that one has its cut elsewhere in the complex plane.
arccosh = Scalar("arccosh", np.arccosh, lambda v, x, y: v / (np.sqrt(x - 1) * np.sqrt(x + 1)))
arctanh = Scalar("arctanh", np.arctanh, lambda v, x, y: v / (1 - np.square(x)))


def _over_square(v: Any, x: Any, length: Any, angle: Any) -> Any:
    """The product v * x / length**2; the square of a length may be too large or too small for a float.

    Beside infinity it is zero, unless there is no angle.
    """
    return v * (np.where(np.isinf(length), 0 * angle, x) / length / length)


def _over_length(v: Any, x: Any, other: Any, length: Any) -> Any:
    """The product v * x / length: at infinity the limit, with one infinity as far as another as for `arctan2`."""
    is_far = np.isinf(x)
    length = np.where(is_far, 1, length)
    length = np.where(np.logical_and(is_far, np.isinf(other)), 2**0.5, length)
    return v * (np.where(is_far, np.sign(x), x) / np.where(length == 0, 1, length))


arctan2 = Scalar(
    "arctan2",
    np.arctan2,
    lambda v, a, b, y: _over_square(v, b, np.hypot(a, b), y),
    lambda v, a, b, y: -_over_square(v, a, np.hypot(a, b), y),
)
# At the origin every slope from -1 to 1 is a subgradient; like abs, zero is taken.
hypot = Scalar(
    "hypot",
    np.hypot,
    _over_length,
    lambda v, a, b, y: _over_length(v, b, a, y),
)
deg2rad = Scalar("deg2rad", np.deg2rad, lambda v, x, y: v * (pi / 180))
rad2deg = Scalar("rad2deg", np.rad2deg, lambda v, x, y: v * (180 / pi))

for _anywhere in (sin, cos, sinh, cosh, tanh, arctan, arcsinh, deg2rad, rad2deg):
    cases(_anywhere, normal(3, 4))
for _inside in (arcsin, arccos, arctanh, tan):
    cases(_inside, lambda rng: rng.uniform(-0.9, 0.9, size=(3, 4)), because="away from the poles")
cases(arccosh, lambda rng: rng.uniform(1.2, 3.0, size=(3, 4)), because="the domain starts at 1")
for _plane in (arctan2, hypot):
    cases(_plane, away_from(0.0, 3, 4), positive(4))
