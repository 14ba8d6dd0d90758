"""Student's t distribution. Probabilities are differentiated by the point, the location and the scale."""

import numpy as np

from pullback.namespaces import the_rest_of
from pullback.rules.special.gammas import gammaln, stdtr
from pullback.scipy.stats.distribution import Continuous

_t = Continuous(
    "t",
    ("df",),
    lambda z, df: (
        gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(np.pi * df) / 2 - (df + 1) / 2 * np.log1p(np.square(z) / df)
    ),
    lambda z, df: stdtr(df, z),
    lambda z, df: stdtr(df, -z),
)

pdf, logpdf, cdf, logcdf, sf, logsf = _t.pdf, _t.logpdf, _t.cdf, _t.logcdf, _t.sf, _t.logsf

__getattr__, __dir__ = the_rest_of("scipy.stats:t", __name__)
