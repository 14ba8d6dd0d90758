"""Huber's loss and its smooth relative."""

from typing import Any

import numpy as np
import scipy.special as sc

from pullback.core.cases import cases, positive
from pullback.core.kinds import Scalar


def _root(delta: Any, r: Any) -> Any:
    return np.sqrt(1 + np.square(r / delta))


huber = Scalar(
    "huber",
    sc.huber,
    lambda v, delta, r, y: v * np.maximum(np.abs(r) - delta, 0),
    lambda v, delta, r, y: v * np.where(np.abs(r) <= delta, r, delta * np.sign(r)),
)
pseudo_huber = Scalar(
    "pseudo_huber",
    sc.pseudo_huber,
    lambda v, delta, r, y: v * (2 * y / delta - np.square(r) / (delta * _root(delta, r))),
    lambda v, delta, r, y: v * (r / _root(delta, r)),
)

cases(huber, lambda rng: rng.uniform(0.9, 1.1, size=4), lambda rng: np.array([-2.0, -0.5, 0.3, 1.7]))
cases(pseudo_huber, positive(3), positive(2, 3))
