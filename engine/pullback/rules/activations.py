"""Activations that NumPy does not have. Their derivatives are written from the output, so a layer may overwrite its input.

Near saturation a derivative from the output is right absolutely, not relatively: y * (1 - y) loses digits as y -> 1.
"""

from typing import Any

import numpy as np

from pullback.cases import away_from, cases, normal
from pullback.kinds import Scalar


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow: exp only ever sees -|x|."""
    t = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, t) / (1 + t)


def _softplus(x: Any) -> Any:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)); the textbook form overflows near x = 710."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _identity(x: Any) -> Any:
    return x + 0


relu = Scalar("relu", _relu, lambda v, x, y: v * (y > 0), into=lambda out, x: np.maximum(x, 0, out=out))
sigmoid = Scalar("sigmoid", _sigmoid, lambda v, x, y: v * (y * (1 - y)))
softplus = Scalar("softplus", _softplus, lambda v, x, y: v * -np.expm1(-y))
identity = Scalar("identity", _identity, lambda v, x, y: v)

cases(relu, away_from(0.0, 16), because="the kink at 0 has no derivative")
for _smooth in (sigmoid, softplus, identity):
    cases(_smooth, normal(3, 4))
