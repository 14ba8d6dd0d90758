"""scipy.stats for traced values: densities and probabilities of the distributions below, everything else SciPy's.

from pullback.scipy.stats import norm
pb.grad(lambda loc: np.sum(norm.logpdf(x, loc, 1.0)))(0.0)
"""

from pullback.namespaces import the_rest_of
from pullback.scipy.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]

__getattr__, __dir__ = the_rest_of("scipy.stats", __name__)
