"""The Poisson distribution, differentiable by its mean; the counts are whole numbers."""

from typing import Any

import numpy as np
import scipy.stats

from pullback.compat.autograd.scipy.elementwise import elementwise

pmf = elementwise(scipy.stats.poisson.pmf, None, lambda ans, k, mu: ans * (k / mu - 1))
logpmf = elementwise(scipy.stats.poisson.logpmf, None, lambda ans, k, mu: k / mu - 1)
cdf = elementwise(scipy.stats.poisson.cdf, None, lambda ans, k, mu: -pmf(np.floor(k), mu))


def __getattr__(name: str) -> Any:
    return getattr(scipy.stats.poisson, name)
