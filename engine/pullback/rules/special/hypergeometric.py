"""Hypergeometric functions and those made of them, by their last argument: every derivative is one of the same kind.

    1F1' = a/b 1F1(a+1; b+1; x)      exprel(x) = 1F1(1; 2; x)
    2F1' = ab/c 2F1(a+1, b+1; c+1; x)    K(m) = π/2 2F1(1/2, 1/2; 1; m),  E(m) = π/2 2F1(-1/2, 1/2; 1; m)

Reference: NIST Digital Library of Mathematical Functions, 13.3.15, 15.5.1, 16.3.1, 19.5.
"""

import math
from typing import Any

import numpy as np
import scipy.special as sc

from pullback.core.cases import cases, normal, tested_in
from pullback.core.kinds import Scalar
from pullback.rules.undefined import UndefinedDerivative

hyp0f1: Scalar = Scalar(
    "hyp0f1", sc.hyp0f1, UndefinedDerivative("hyp0f1", "v"), lambda v, b, z, y: v * (hyp0f1(b + 1, z) / b)
)
hyp1f1: Scalar = Scalar(
    "hyp1f1",
    sc.hyp1f1,
    UndefinedDerivative("hyp1f1", "a"),
    UndefinedDerivative("hyp1f1", "b"),
    lambda v, a, b, x, y: v * (a / b * hyp1f1(a + 1, b + 1, x)),
)
hyp2f1: Scalar = Scalar(
    "hyp2f1",
    sc.hyp2f1,
    UndefinedDerivative("hyp2f1", "a"),
    UndefinedDerivative("hyp2f1", "b"),
    UndefinedDerivative("hyp2f1", "c"),
    lambda v, a, b, c, z, y: v * (a * b / c * hyp2f1(a + 1, b + 1, c + 1, z)),
)


def exprel_slope(x: Any) -> Any:
    """exprel'(x) = 1F1(2; 3; x) / 2 = ((x - 1) e^x + 1) / x^2, of which SciPy sums as many terms as x is large."""
    is_near = np.abs(x) < _CLOSED_FROM
    near = 0.5 * hyp1f1(2.0, 3.0, np.where(is_near, x, 0.0))
    far = np.minimum(np.where(is_near, _CLOSED_FROM, x), 1e30)
    return np.where(is_near, near, (1 - 1 / far) * (np.exp(far) / far) + (1 / far) * (1 / far))


_CLOSED_FROM = 30.0
"""From here on no digit of the closed form cancels."""

exprel = Scalar("exprel", sc.exprel, lambda v, x, y: v * exprel_slope(x))
ellipk = Scalar("ellipk", sc.ellipk, lambda v, m, y: v * (math.pi / 8 * hyp2f1(1.5, 1.5, 2.0, m)))
ellipe = Scalar("ellipe", sc.ellipe, lambda v, m, y: v * (-math.pi / 8 * hyp2f1(0.5, 1.5, 2.0, m)))

cases(exprel, normal(3))
for _row in (ellipk, ellipe):
    cases(_row, lambda rng: rng.uniform(-0.5, 0.8, size=4))

tested_in("rules/special/test_orders.py", "hyp0f1", "hyp1f1", "hyp2f1")
