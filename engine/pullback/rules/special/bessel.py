"""Bessel functions, by their argument; a derivative by the order is refused.

For every kind C' is half of the difference or the sum of its neighbours: (C_{v-1} - C_{v+1}) / 2 for J, Y and the Hankel
functions, (I_{v-1} + I_{v+1}) / 2, -(K_{v-1} + K_{v+1}) / 2. That is right at 0 too, where v/x C_v is not.
Functions with an e at the end carry an exponential factor, which is differentiated beside; those that carry exp(-|Re z|)
or exp(-|Im z|) are no analytic functions and are differentiated for real arguments only.
Reference: NIST Digital Library of Mathematical Functions, 10.6.1, 10.29.1.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc

from pullback.core.cases import cases, positive, tested_in
from pullback.core.kinds import Scalar
from pullback.core.types import dtype_of
from pullback.errors import NoRuleError
from pullback.rules.undefined import UndefinedDerivative


def _of_order(name: str, ufunc: Any, slope: Callable[..., Any]) -> Scalar:
    """A row for C(v, x), with dC/dx = slope(v, x, y)."""
    return Scalar(name, ufunc, UndefinedDerivative(name, "the order"), lambda v, n, x, y: v * slope(n, x, y))


def _real(name: str, x: Any) -> Any:
    if dtype_of(x).kind == "c":
        raise NoRuleError(f"{name} is not analytic and has no rule for complex arguments; scale the unscaled function")
    return x


# --- any order ------------------------------------------------------------------------------------------------------
jv: Scalar = _of_order("jv", sc.jv, lambda n, x, y: (jv(n - 1, x) - jv(n + 1, x)) / 2)
yv: Scalar = _of_order("yv", sc.yv, lambda n, x, y: (yv(n - 1, x) - yv(n + 1, x)) / 2)
iv: Scalar = _of_order("iv", sc.iv, lambda n, x, y: (iv(n - 1, x) + iv(n + 1, x)) / 2)
kv: Scalar = _of_order("kv", sc.kv, lambda n, x, y: (kv(n - 1, x) + kv(n + 1, x)) / -2)
yn: Scalar = _of_order("yn", sc.yn, lambda n, x, y: (yv(n - 1, x) - yv(n + 1, x)) / 2)
kn: Scalar = _of_order("kn", sc.kn, lambda n, x, y: (kv(n - 1, x) + kv(n + 1, x)) / -2)
hankel1: Scalar = _of_order("hankel1", sc.hankel1, lambda n, x, y: (hankel1(n - 1, x) - hankel1(n + 1, x)) / 2)
hankel2: Scalar = _of_order("hankel2", sc.hankel2, lambda n, x, y: (hankel2(n - 1, x) - hankel2(n + 1, x)) / 2)
jve: Scalar = _of_order("jve", sc.jve, lambda n, x, y: (jve(n - 1, _real("jve", x)) - jve(n + 1, x)) / 2)
yve: Scalar = _of_order("yve", sc.yve, lambda n, x, y: (yve(n - 1, _real("yve", x)) - yve(n + 1, x)) / 2)
ive: Scalar = _of_order(
    "ive", sc.ive, lambda n, x, y: (ive(n - 1, _real("ive", x)) + ive(n + 1, x)) / 2 - np.sign(x) * y
)
kve: Scalar = _of_order("kve", sc.kve, lambda n, x, y: y - (kve(n - 1, x) + kve(n + 1, x)) / 2)

# --- orders 0 and 1 -------------------------------------------------------------------------------------------------
j1 = Scalar("j1", sc.j1, lambda v, x, y: v * ((jv(0.0, x) - jv(2.0, x)) / 2))
j0 = Scalar("j0", sc.j0, lambda v, x, y: v * -j1(x))
y1 = Scalar("y1", sc.y1, lambda v, x, y: v * ((yv(0.0, x) - yv(2.0, x)) / 2))
y0 = Scalar("y0", sc.y0, lambda v, x, y: v * -y1(x))
i1 = Scalar("i1", sc.i1, lambda v, x, y: v * ((iv(0.0, x) + iv(2.0, x)) / 2))
i0 = Scalar("i0", sc.i0, lambda v, x, y: v * i1(x))
k1 = Scalar("k1", sc.k1, lambda v, x, y: v * ((kv(0.0, x) + kv(2.0, x)) / -2))
k0 = Scalar("k0", sc.k0, lambda v, x, y: v * -k1(x))
i1e = Scalar("i1e", sc.i1e, lambda v, x, y: v * ((ive(0.0, x) + ive(2.0, x)) / 2 - np.sign(x) * y))
i0e = Scalar("i0e", sc.i0e, lambda v, x, y: v * (i1e(x) - np.sign(x) * y))
k1e = Scalar("k1e", sc.k1e, lambda v, x, y: v * (y - (kve(0.0, x) + kve(2.0, x)) / 2))
k0e = Scalar("k0e", sc.k0e, lambda v, x, y: v * (y - k1e(x)))

for _row in (j0, j1, y0, y1, i0, i1, k0, k1, i0e, i1e, k0e, k1e):
    cases(_row, positive(4))

tested_in(
    "rules/special/test_orders.py", "jv", "yv", "iv", "kv", "yn", "kn", "hankel1", "hankel2", "jve", "yve", "ive", "kve"
)
