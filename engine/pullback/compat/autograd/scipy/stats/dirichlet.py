"""The Dirichlet distribution at one point."""

from typing import Any

import numpy as np
import scipy.stats

from pullback.compat.autograd.primitives import defjvp, defvjp, primitive
from pullback.compat.autograd.scipy.special import psi

rvs = scipy.stats.dirichlet.rvs
logpdf = primitive(scipy.stats.dirichlet.logpdf)
pdf = primitive(scipy.stats.dirichlet.pdf)


def _score_x(x: Any, alpha: Any) -> Any:
    return (alpha - 1) / x


def _score_alpha(x: Any, alpha: Any) -> Any:
    return np.log(x) - psi(alpha) + psi(np.sum(alpha))


defvjp(
    logpdf,
    lambda ans, x, alpha: lambda g: g * _score_x(x, alpha),
    lambda ans, x, alpha: lambda g: g * _score_alpha(x, alpha),
)
defvjp(
    pdf,
    lambda ans, x, alpha: lambda g: g * ans * _score_x(x, alpha),
    lambda ans, x, alpha: lambda g: g * ans * _score_alpha(x, alpha),
)
defjvp(
    logpdf,
    lambda g, ans, x, alpha: np.sum(g * _score_x(x, alpha)),
    lambda g, ans, x, alpha: np.sum(g * _score_alpha(x, alpha)),
)
defjvp(
    pdf,
    lambda g, ans, x, alpha: ans * np.sum(g * _score_x(x, alpha)),
    lambda g, ans, x, alpha: ans * np.sum(g * _score_alpha(x, alpha)),
)


def __getattr__(name: str) -> Any:
    return getattr(scipy.stats.dirichlet, name)
