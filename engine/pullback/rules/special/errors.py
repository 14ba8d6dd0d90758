"""The error function and the normal distribution: every derivative is a Gaussian times something known.

Reference: NIST Digital Library of Mathematical Functions, 7.2, 7.10, 7.17.
"""

import math

import numpy as np
import scipy.special as sc

from pullback.core.cases import cases, normal, positive, tested_in
from pullback.core.kinds import Scalar

_SLOPE = 2 / math.sqrt(math.pi)  # of erf at 0
_PEAK = 1 / math.sqrt(2 * math.pi)  # of the normal density

erf = Scalar("erf", sc.erf, lambda v, x, y: v * (_SLOPE * np.exp(-np.square(x))))
erfc = Scalar("erfc", sc.erfc, lambda v, x, y: v * (-_SLOPE * np.exp(-np.square(x))))
erfi = Scalar("erfi", sc.erfi, lambda v, x, y: v * (_SLOPE * np.exp(np.square(x))))
erfcx = Scalar("erfcx", sc.erfcx, lambda v, x, y: v * (2 * x * y - _SLOPE))
dawsn = Scalar("dawsn", sc.dawsn, lambda v, x, y: v * (1 - 2 * x * y))
wofz = Scalar("wofz", sc.wofz, lambda v, x, y: v * (1j * _SLOPE - 2 * x * y))
erfinv = Scalar("erfinv", sc.erfinv, lambda v, x, y: v * (np.exp(np.square(y)) / _SLOPE))
erfcinv = Scalar("erfcinv", sc.erfcinv, lambda v, x, y: v * (np.exp(np.square(y)) / -_SLOPE))

ndtr = Scalar("ndtr", sc.ndtr, lambda v, x, y: v * (_PEAK * np.exp(-np.square(x) / 2)))
log_ndtr = Scalar("log_ndtr", sc.log_ndtr, lambda v, x, y: v * (_PEAK * np.exp(-np.square(x) / 2 - y)))
ndtri = Scalar("ndtri", sc.ndtri, lambda v, x, y: v * (np.exp(np.square(y) / 2) / _PEAK))
ndtri_exp = Scalar("ndtri_exp", sc.ndtri_exp, lambda v, x, y: v * (np.exp(x + np.square(y) / 2) / _PEAK))
owens_t = Scalar(
    "owens_t",
    sc.owens_t,
    lambda v, h, a, y: v * (-_PEAK / 2 * np.exp(-np.square(h) / 2) * erf(a * h / math.sqrt(2))),
    lambda v, h, a, y: v * (np.exp(-np.square(h) * (1 + np.square(a)) / 2) / (2 * math.pi * (1 + np.square(a)))),
)

for _row in (erf, erfc, erfi, erfcx, dawsn, ndtr, log_ndtr):
    cases(_row, normal(3, 2))
for _row in (erfinv, ndtri):
    cases(_row, lambda rng: rng.uniform(0.1, 0.9, size=4))
cases(erfcinv, lambda rng: rng.uniform(0.2, 1.8, size=4))
cases(ndtri_exp, lambda rng: -rng.uniform(0.2, 3, size=4))
cases(owens_t, normal(3, 1), positive(2))

tested_in("rules/special/test_orders.py", "wofz")
