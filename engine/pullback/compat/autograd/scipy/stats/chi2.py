"""The chi-squared distribution. Its distribution function has no elementary derivative by df."""

from typing import Any

import numpy as np
import scipy.stats

from pullback.compat.autograd.scipy.elementwise import elementwise
from pullback.compat.autograd.scipy.special import psi

logpdf = elementwise(
    scipy.stats.chi2.logpdf,
    lambda ans, x, df: (df / 2 - 1) / x - 0.5,
    lambda ans, x, df: 0.5 * (np.log(x / 2) - psi(df / 2)),
)
pdf = elementwise(
    scipy.stats.chi2.pdf,
    lambda ans, x, df: ans * ((df / 2 - 1) / x - 0.5),
    lambda ans, x, df: ans * 0.5 * (np.log(x / 2) - psi(df / 2)),
)
cdf = elementwise(scipy.stats.chi2.cdf, lambda ans, x, df: pdf(x, df), None)


def __getattr__(name: str) -> Any:
    return getattr(scipy.stats.chi2, name)
