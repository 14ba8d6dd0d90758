"""The gamma function and its family: gamma'(x) = gamma(x) digamma(x), and digamma is the first of the polygammas.

The polygammas are zeta functions, psi_n(x) = (-1)^(n+1) n! zeta(n+1, x), so that every order of derivative is there.
Incomplete functions are differentiable by their last argument: the derivative is the density that they integrate.
References: NIST Digital Library of Mathematical Functions, 5.2, 5.15, 8.8, 8.17, 25.11.
"""

from typing import Any

import numpy as np
import scipy.special as sc

from pullback.core.cases import cases, positive, tested_in
from pullback.core.kinds import Scalar
from pullback.rules.special.entropy import xlog1py, xlogy
from pullback.rules.undefined import UndefinedDerivative

zeta: Scalar = Scalar("zeta", sc.zeta, UndefinedDerivative("zeta", "x"), lambda v, s, q, y: v * (-s * zeta(s + 1, q)))
digamma = Scalar("digamma", sc.digamma, lambda v, x, y: v * zeta(2.0, x))
gammaln = Scalar("gammaln", sc.gammaln, lambda v, x, y: v * digamma(x))
loggamma = Scalar("loggamma", sc.loggamma, lambda v, x, y: v * digamma(x))
gamma = Scalar("gamma", sc.gamma, lambda v, x, y: v * (y * digamma(x)))
rgamma = Scalar("rgamma", sc.rgamma, lambda v, x, y: -v * (y * digamma(x)))
gammasgn = Scalar("gammasgn", sc.gammasgn, None)

# --- two arguments --------------------------------------------------------------------------------------------------
beta = Scalar(
    "beta",
    sc.beta,
    lambda v, a, b, y: v * (y * (digamma(a) - digamma(a + b))),
    lambda v, a, b, y: v * (y * (digamma(b) - digamma(a + b))),
)
betaln = Scalar(
    "betaln",
    sc.betaln,
    lambda v, a, b, y: v * (digamma(a) - digamma(a + b)),
    lambda v, a, b, y: v * (digamma(b) - digamma(a + b)),
)
poch = Scalar(
    "poch",
    sc.poch,
    lambda v, z, m, y: v * (y * (digamma(z + m) - digamma(z))),
    lambda v, z, m, y: v * (y * digamma(z + m)),
)
binom = Scalar(
    "binom",
    sc.binom,
    lambda v, n, k, y: v * (y * (digamma(n + 1) - digamma(n - k + 1))),
    lambda v, n, k, y: v * (y * (digamma(n - k + 1) - digamma(k + 1))),
)


# --- incomplete -----------------------------------------------------------------------------------------------------
def _gamma_density(a: Any, x: Any) -> Any:
    return np.exp(xlogy(a - 1, x) - x - gammaln(a))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return np.exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b))


gammainc = Scalar(
    "gammainc", sc.gammainc, UndefinedDerivative("gammainc", "a"), lambda v, a, x, y: v * _gamma_density(a, x)
)
gammaincc = Scalar(
    "gammaincc", sc.gammaincc, UndefinedDerivative("gammaincc", "a"), lambda v, a, x, y: -v * _gamma_density(a, x)
)
gammaincinv = Scalar(
    "gammaincinv", sc.gammaincinv, UndefinedDerivative("gammaincinv", "a"), lambda v, a, p, y: v / _gamma_density(a, y)
)
gammainccinv = Scalar(
    "gammainccinv",
    sc.gammainccinv,
    UndefinedDerivative("gammainccinv", "a"),
    lambda v, a, p, y: -v / _gamma_density(a, y),
)
betainc = Scalar(
    "betainc",
    sc.betainc,
    UndefinedDerivative("betainc", "a"),
    UndefinedDerivative("betainc", "b"),
    lambda v, a, b, x, y: v * _beta_density(a, b, x),
)
betaincc = Scalar(
    "betaincc",
    sc.betaincc,
    UndefinedDerivative("betaincc", "a"),
    UndefinedDerivative("betaincc", "b"),
    lambda v, a, b, x, y: -v * _beta_density(a, b, x),
)
betaincinv = Scalar(
    "betaincinv",
    sc.betaincinv,
    UndefinedDerivative("betaincinv", "a"),
    UndefinedDerivative("betaincinv", "b"),
    lambda v, a, b, p, y: v / _beta_density(a, b, y),
)
stdtr = Scalar("stdtr", sc.stdtr, UndefinedDerivative("stdtr", "df"), lambda v, df, t, y: v * _student_density(df, t))


def _student_density(df: Any, t: Any) -> Any:
    half = (df + 1) / 2
    return np.exp(gammaln(half) - gammaln(df / 2) - half * np.log1p(np.square(t) / df)) / np.sqrt(np.pi * df)


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma."""
    factor = (-1.0) ** (n + 1) * sc.gamma(n + 1.0)
    if np.all(n == 0):
        return digamma(x)
    higher = factor * zeta(np.where(n == 0, 1, n) + 1.0, x)
    return np.where(n == 0, digamma(x), higher) if np.any(n == 0) else higher


for _row in (digamma, gammaln, loggamma, gamma, rgamma):
    cases(_row, positive(3))
for _row in (digamma, gammaln, gamma, rgamma):
    cases(_row, lambda rng: rng.uniform(-1.8, -1.2, size=3), because="between the poles")
for _row in (beta, betaln, poch):
    cases(_row, positive(3, 2), positive(2))
cases(binom, lambda rng: rng.uniform(4, 6, size=3), positive(3))

tested_in(
    "rules/special/test_orders.py",
    "zeta",
    "gammainc",
    "gammaincc",
    "gammaincinv",
    "gammainccinv",
    "betainc",
    "betaincc",
    "betaincinv",
    "stdtr",
)
