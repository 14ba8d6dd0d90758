"""The gamma distribution of unit scale. Its distribution function has no elementary derivative by a."""

from typing import Any

import numpy as np
import scipy.stats

from pullback.compat.autograd.scipy.elementwise import elementwise
from pullback.compat.autograd.scipy.special import psi

logpdf = elementwise(
    scipy.stats.gamma.logpdf,
    lambda ans, x, a: (a - 1) / x - 1,
    lambda ans, x, a: np.log(x) - psi(a),
)
pdf = elementwise(
    scipy.stats.gamma.pdf,
    lambda ans, x, a: ans * ((a - 1) / x - 1),
    lambda ans, x, a: ans * (np.log(x) - psi(a)),
)
cdf = elementwise(scipy.stats.gamma.cdf, lambda ans, x, a: pdf(x, a), None)


def __getattr__(name: str) -> Any:
    return getattr(scipy.stats.gamma, name)
