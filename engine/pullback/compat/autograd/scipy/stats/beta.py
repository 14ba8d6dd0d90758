"""The beta distribution. Its distribution function has no elementary derivative by a and b."""

from typing import Any

import numpy as np
import scipy.stats

from pullback.compat.autograd.scipy.elementwise import elementwise
from pullback.compat.autograd.scipy.special import psi

logpdf = elementwise(
    scipy.stats.beta.logpdf,
    lambda ans, x, a, b: (a - 1) / x - (b - 1) / (1 - x),
    lambda ans, x, a, b: np.log(x) - psi(a) + psi(a + b),
    lambda ans, x, a, b: np.log1p(-x) - psi(b) + psi(a + b),
)
pdf = elementwise(
    scipy.stats.beta.pdf,
    lambda ans, x, a, b: ans * ((a - 1) / x - (b - 1) / (1 - x)),
    lambda ans, x, a, b: ans * (np.log(x) - psi(a) + psi(a + b)),
    lambda ans, x, a, b: ans * (np.log1p(-x) - psi(b) + psi(a + b)),
)
cdf = elementwise(scipy.stats.beta.cdf, lambda ans, x, a, b: pdf(x, a, b), None, None)


def __getattr__(name: str) -> Any:
    return getattr(scipy.stats.beta, name)
