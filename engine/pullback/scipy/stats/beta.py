"""The beta distribution. Probabilities are differentiated by the point, the location and the scale."""

from pullback.namespaces import the_rest_of
from pullback.rules.special.entropy import xlog1py, xlogy
from pullback.rules.special.gammas import betainc, betaincc, betaln
from pullback.scipy.stats.distribution import Continuous

_beta = Continuous(
    "beta",
    ("a", "b"),
    lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b),
    lambda z, a, b: betainc(a, b, z),
    lambda z, a, b: betaincc(a, b, z),
    support=(0.0, 1.0),
    inside=0.5,
)

pdf, logpdf, cdf, logcdf, sf, logsf = _beta.pdf, _beta.logpdf, _beta.cdf, _beta.logcdf, _beta.sf, _beta.logsf

__getattr__, __dir__ = the_rest_of("scipy.stats:beta", __name__)
