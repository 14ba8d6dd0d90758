"""Student's t, with z = (x - loc) / scale. The distribution function has no elementary derivative by df."""

from typing import Any

import numpy as np
import scipy.stats

from pullback.compat.autograd.scipy.elementwise import elementwise
from pullback.compat.autograd.scipy.special import psi


def _z(x: Any, loc: Any, scale: Any) -> Any:
    return (x - loc) / scale


def _score_x(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """Derivative of the log density by x."""
    z = _z(x, loc, scale)
    return -(df + 1) * z / (scale * (df + z**2))


def _score_df(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    square = _z(x, loc, scale) ** 2
    rest = (df + 1) * square / (df * (df + square)) - np.log1p(square / df)
    return 0.5 * (psi((df + 1) / 2) - psi(df / 2) - 1 / df + rest)


def _score_scale(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    square = _z(x, loc, scale) ** 2
    return ((df + 1) * square / (df + square) - 1) / scale


logpdf = elementwise(
    scipy.stats.t.logpdf,
    lambda ans, x, df, loc=0.0, scale=1.0: _score_x(x, df, loc, scale),
    lambda ans, x, df, loc=0.0, scale=1.0: _score_df(x, df, loc, scale),
    lambda ans, x, df, loc=0.0, scale=1.0: -_score_x(x, df, loc, scale),
    lambda ans, x, df, loc=0.0, scale=1.0: _score_scale(x, df, loc, scale),
)
pdf = elementwise(
    scipy.stats.t.pdf,
    lambda ans, x, df, loc=0.0, scale=1.0: ans * _score_x(x, df, loc, scale),
    lambda ans, x, df, loc=0.0, scale=1.0: ans * _score_df(x, df, loc, scale),
    lambda ans, x, df, loc=0.0, scale=1.0: -ans * _score_x(x, df, loc, scale),
    lambda ans, x, df, loc=0.0, scale=1.0: ans * _score_scale(x, df, loc, scale),
)
cdf = elementwise(
    scipy.stats.t.cdf,
    lambda ans, x, df, loc=0.0, scale=1.0: pdf(x, df, loc, scale),
    None,
    lambda ans, x, df, loc=0.0, scale=1.0: -pdf(x, df, loc, scale),
    lambda ans, x, df, loc=0.0, scale=1.0: -pdf(x, df, loc, scale) * _z(x, loc, scale),
)


def _hazard(log_share: Any, x: Any, df: Any, loc: Any, scale: Any) -> Any:
    """Density over a share of the distribution, in logarithms so that tails stay finite."""
    return np.exp(logpdf(x, df, loc, scale) - log_share)


logcdf = elementwise(
    scipy.stats.t.logcdf,
    lambda ans, x, df, loc=0.0, scale=1.0: _hazard(ans, x, df, loc, scale),
    None,
    lambda ans, x, df, loc=0.0, scale=1.0: -_hazard(ans, x, df, loc, scale),
    lambda ans, x, df, loc=0.0, scale=1.0: -_hazard(ans, x, df, loc, scale) * _z(x, loc, scale),
)


def __getattr__(name: str) -> Any:
    return getattr(scipy.stats.t, name)
