"""Exponentials to other bases, and exponential integrals."""

import math

import numpy as np
import scipy.special as sc

from pullback.core.cases import cases, normal, positive
from pullback.core.kinds import Scalar

exp10 = Scalar("exp10", sc.exp10, lambda v, x, y: v * (math.log(10) * y))
exp1 = Scalar("exp1", sc.exp1, lambda v, x, y: -v * (np.exp(-x) / x))
expi = Scalar("expi", sc.expi, lambda v, x, y: v * (np.exp(x) / x))
powm1 = Scalar(
    "powm1",
    sc.powm1,
    lambda v, a, b, y: v * (b * a ** (b - 1)),
    lambda v, a, b, y: v * ((y + 1) * np.log(a)),
)

cases(exp10, normal(3))
for _row in (exp1, expi):
    cases(_row, positive(3))
cases(powm1, positive(3, 2), normal(2))
