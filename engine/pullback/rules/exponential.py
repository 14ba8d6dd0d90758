"""Exponentials, logarithms and roots."""

from math import log as log_of
from typing import Any

import numpy as np

from pullback.core.cases import away_from, cases, normal, positive
from pullback.core.kinds import Scalar

LN_2 = log_of(2.0)
LN_10 = log_of(10.0)

exp = Scalar("exp", np.exp, lambda v, x, y: v * y)
exp2 = Scalar("exp2", np.exp2, lambda v, x, y: v * (y * LN_2))
expm1 = Scalar("expm1", np.expm1, lambda v, x, y: v * (y + 1))
log = Scalar("log", np.log, lambda v, x, y: v / x)
log2 = Scalar("log2", np.log2, lambda v, x, y: v / (x * LN_2))
log10 = Scalar("log10", np.log10, lambda v, x, y: v / (x * LN_10))
log1p = Scalar("log1p", np.log1p, lambda v, x, y: v / (x + 1))
sqrt = Scalar("sqrt", np.sqrt, lambda v, x, y: v * (0.5 / y))
cbrt = Scalar("cbrt", np.cbrt, lambda v, x, y: v / (3 * np.square(y)))


def _exponent(mine: Any, other: Any, y: Any, half: float) -> Any:
    """Log of the weight of one term in a sum; where that term is the sum, infinite or not, the weight is one.

    Of two that are infinite each has a `half`, as of two that are equal. Beside -inf a term is the sum, however small.
    """
    is_sum = mine == y
    exponent = np.where(is_sum, 0, mine - np.where(is_sum, 0, y))
    return np.where(np.logical_and(mine == other, mine == np.inf), half, exponent)


logaddexp = Scalar(
    "logaddexp",
    np.logaddexp,
    lambda v, a, b, y: v * np.exp(_exponent(a, b, y, -LN_2)),
    lambda v, a, b, y: v * np.exp(_exponent(b, a, y, -LN_2)),
)
logaddexp2 = Scalar(
    "logaddexp2",
    np.logaddexp2,
    lambda v, a, b, y: v * np.exp2(_exponent(a, b, y, -1.0)),
    lambda v, a, b, y: v * np.exp2(_exponent(b, a, y, -1.0)),
)

for _anywhere in (exp, exp2, expm1):
    cases(_anywhere, normal(3, 4))
for _right_of_zero in (log, log2, log10, log1p, sqrt):
    cases(_right_of_zero, positive(3, 4))
cases(cbrt, away_from(0.0, 8), because="the root is vertical at 0")
for _sum in (logaddexp, logaddexp2):
    cases(_sum, normal(3, 4), normal(4))
