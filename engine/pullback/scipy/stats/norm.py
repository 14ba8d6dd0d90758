"""The normal distribution."""

import math

import numpy as np

from pullback.namespaces import the_rest_of
from pullback.rules.special.errors import log_ndtr, ndtr
from pullback.scipy.stats.distribution import Continuous

_norm = Continuous(
    "norm",
    (),
    lambda z: -np.square(z) / 2 - math.log(2 * math.pi) / 2,
    ndtr,
    lambda z: ndtr(-z),
    logcdf=log_ndtr,
    logsf=lambda z: log_ndtr(-z),
)

pdf, logpdf, cdf, logcdf, sf, logsf = _norm.pdf, _norm.logpdf, _norm.cdf, _norm.logcdf, _norm.sf, _norm.logsf

__getattr__, __dir__ = the_rest_of("scipy.stats:norm", __name__)
