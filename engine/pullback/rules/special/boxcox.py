"""The Box-Cox transformation, y = (x^λ - 1) / λ = L exprel(λ L) with L = log(x), and its inverse.

Written with exprel, the derivative by λ, L^2 exprel'(λ L), is right at λ = 0, where y is the logarithm.
"""

from typing import Any

import numpy as np
import scipy.special as sc

from pullback.core.cases import cases, positive
from pullback.core.kinds import Scalar
from pullback.rules.special.hypergeometric import exprel_slope


def _by_lambda(log: Any, lambda_: Any) -> Any:
    return np.square(log) * exprel_slope(lambda_ * log)


boxcox = Scalar(
    "boxcox",
    sc.boxcox,
    lambda v, x, a, y: v * np.exp((a - 1) * np.log(x)),
    lambda v, x, a, y: v * _by_lambda(np.log(x), a),
)
boxcox1p = Scalar(
    "boxcox1p",
    sc.boxcox1p,
    lambda v, x, a, y: v * np.exp((a - 1) * np.log1p(x)),
    lambda v, x, a, y: v * _by_lambda(np.log1p(x), a),
)
inv_boxcox = Scalar(
    "inv_boxcox",
    sc.inv_boxcox,
    lambda v, x, a, y: v * np.exp((1 - a) * np.log(y)),
    lambda v, x, a, y: -v * (_by_lambda(np.log(y), a) * np.exp((1 - a) * np.log(y))),
)
inv_boxcox1p = Scalar(
    "inv_boxcox1p",
    sc.inv_boxcox1p,
    lambda v, x, a, y: v * np.exp((1 - a) * np.log1p(y)),
    lambda v, x, a, y: -v * (_by_lambda(np.log1p(y), a) * np.exp((1 - a) * np.log1p(y))),
)

for _row in (boxcox, boxcox1p, inv_boxcox, inv_boxcox1p):
    cases(_row, positive(3), lambda rng: np.array([0.0, 0.7, 2.0]), because="λ = 0 is the logarithm")
