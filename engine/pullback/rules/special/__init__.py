"""The functions of scipy.special, one family per file.

They are not part of `pullback.rules`: importing this package imports SciPy, so it is loaded when a function of
scipy.special first meets a traced value (`pullback.numpy_api.special`). Derivatives by an order or another parameter that
have no closed form are refused by name.
"""

from pullback.rules.special import (
    bessel,
    boxcox,
    degrees,
    entropy,
    errors,
    exponential,
    gammas,
    hypergeometric,
    logistic,
    robust,
)

__all__ = [
    "bessel",
    "boxcox",
    "degrees",
    "entropy",
    "errors",
    "exponential",
    "gammas",
    "hypergeometric",
    "logistic",
    "robust",
]
