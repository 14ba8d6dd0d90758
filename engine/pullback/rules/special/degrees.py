"""Trigonometric functions of degrees, and cos(x) - 1."""

import math

import numpy as np
import scipy.special as sc

from pullback.core.cases import cases, normal
from pullback.core.kinds import Scalar

_DEGREE = math.pi / 180

sindg: Scalar = Scalar("sindg", sc.sindg, lambda v, x, y: v * (_DEGREE * cosdg(x)))
cosdg: Scalar = Scalar("cosdg", sc.cosdg, lambda v, x, y: v * (-_DEGREE * sindg(x)))
tandg = Scalar("tandg", sc.tandg, lambda v, x, y: v * (_DEGREE * (1 + np.square(y))))
cotdg = Scalar("cotdg", sc.cotdg, lambda v, x, y: v * (-_DEGREE * (1 + np.square(y))))
cosm1 = Scalar("cosm1", sc.cosm1, lambda v, x, y: v * -np.sin(x))

for _row in (sindg, cosdg, tandg, cotdg):
    cases(_row, lambda rng: rng.uniform(20, 70, size=4))
cases(cosm1, normal(4))
