"""The logistic function, its inverse and its logarithm."""

import scipy.special as sc

from pullback.core.cases import cases, normal
from pullback.core.kinds import Scalar

expit = Scalar("expit", sc.expit, lambda v, x, y: v * (y * (1 - y)))
log_expit = Scalar("log_expit", sc.log_expit, lambda v, x, y: v * expit(-x))
logit = Scalar("logit", sc.logit, lambda v, x, y: v / (x * (1 - x)))

cases(expit, normal(3))
cases(log_expit, normal(3))
cases(logit, lambda rng: rng.uniform(0.1, 0.9, size=4))
