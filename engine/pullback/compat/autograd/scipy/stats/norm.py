"""The normal distribution, with z = (x - loc) / scale."""

from typing import Any

import numpy as np
import scipy.stats

from pullback.compat.autograd.scipy.elementwise import elementwise


def _z(x: Any, loc: Any, scale: Any) -> Any:
    return (x - loc) / scale


pdf = elementwise(
    scipy.stats.norm.pdf,
    lambda ans, x, loc=0.0, scale=1.0: -ans * _z(x, loc, scale) / scale,
    lambda ans, x, loc=0.0, scale=1.0: ans * _z(x, loc, scale) / scale,
    lambda ans, x, loc=0.0, scale=1.0: ans * (_z(x, loc, scale) ** 2 - 1) / scale,
)
cdf = elementwise(
    scipy.stats.norm.cdf,
    lambda ans, x, loc=0.0, scale=1.0: pdf(x, loc, scale),
    lambda ans, x, loc=0.0, scale=1.0: -pdf(x, loc, scale),
    lambda ans, x, loc=0.0, scale=1.0: -pdf(x, loc, scale) * _z(x, loc, scale),
)
sf = elementwise(
    scipy.stats.norm.sf,
    lambda ans, x, loc=0.0, scale=1.0: -pdf(x, loc, scale),
    lambda ans, x, loc=0.0, scale=1.0: pdf(x, loc, scale),
    lambda ans, x, loc=0.0, scale=1.0: pdf(x, loc, scale) * _z(x, loc, scale),
)
logpdf = elementwise(
    scipy.stats.norm.logpdf,
    lambda ans, x, loc=0.0, scale=1.0: -_z(x, loc, scale) / scale,
    lambda ans, x, loc=0.0, scale=1.0: _z(x, loc, scale) / scale,
    lambda ans, x, loc=0.0, scale=1.0: (_z(x, loc, scale) ** 2 - 1) / scale,
)


def _hazard(log_share: Any, x: Any, loc: Any, scale: Any) -> Any:
    """Density over a share of the distribution, in logarithms so that tails stay finite."""
    return np.exp(logpdf(x, loc, scale) - log_share)


logcdf = elementwise(
    scipy.stats.norm.logcdf,
    lambda ans, x, loc=0.0, scale=1.0: _hazard(ans, x, loc, scale),
    lambda ans, x, loc=0.0, scale=1.0: -_hazard(ans, x, loc, scale),
    lambda ans, x, loc=0.0, scale=1.0: -_hazard(ans, x, loc, scale) * _z(x, loc, scale),
)
logsf = elementwise(
    scipy.stats.norm.logsf,
    lambda ans, x, loc=0.0, scale=1.0: -_hazard(ans, x, loc, scale),
    lambda ans, x, loc=0.0, scale=1.0: _hazard(ans, x, loc, scale),
    lambda ans, x, loc=0.0, scale=1.0: _hazard(ans, x, loc, scale) * _z(x, loc, scale),
)


def __getattr__(name: str) -> Any:
    return getattr(scipy.stats.norm, name)
