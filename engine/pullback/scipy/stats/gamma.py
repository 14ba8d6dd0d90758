"""The gamma distribution. Probabilities are differentiated by the point, the location and the scale."""

import numpy as np

from pullback.namespaces import the_rest_of
from pullback.rules.special.entropy import xlogy
from pullback.rules.special.gammas import gammainc, gammaincc, gammaln
from pullback.scipy.stats.distribution import Continuous

_gamma = Continuous(
    "gamma",
    ("a",),
    lambda z, a: xlogy(a - 1, z) - z - gammaln(a),
    lambda z, a: gammainc(a, z),
    lambda z, a: gammaincc(a, z),
    support=(0.0, np.inf),
    inside=1.0,
)

pdf, logpdf, cdf, logcdf, sf, logsf = _gamma.pdf, _gamma.logpdf, _gamma.cdf, _gamma.logcdf, _gamma.sf, _gamma.logsf

__getattr__, __dir__ = the_rest_of("scipy.stats:gamma", __name__)
