"""The chi-squared distribution. Probabilities are differentiated by the point, the location and the scale."""

import math

import numpy as np

from pullback.namespaces import the_rest_of
from pullback.rules.special.entropy import xlogy
from pullback.rules.special.gammas import gammainc, gammaincc, gammaln
from pullback.scipy.stats.distribution import Continuous

_chi2 = Continuous(
    "chi2",
    ("df",),
    lambda z, df: xlogy(df / 2 - 1, z) - z / 2 - gammaln(df / 2) - df / 2 * math.log(2),
    lambda z, df: gammainc(df / 2, z / 2),
    lambda z, df: gammaincc(df / 2, z / 2),
    support=(0.0, np.inf),
    inside=1.0,
)

pdf, logpdf, cdf, logcdf, sf, logsf = _chi2.pdf, _chi2.logpdf, _chi2.cdf, _chi2.logcdf, _chi2.sf, _chi2.logsf

__getattr__, __dir__ = the_rest_of("scipy.stats:chi2", __name__)
