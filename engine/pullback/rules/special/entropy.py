"""x log(y) and the entropies made of it."""

from typing import Any

import numpy as np
import scipy.special as sc

from pullback.core.cases import cases, normal, positive
from pullback.core.kinds import Scalar


def _ratio(x: Any, y: Any) -> Any:
    """The quotient, which is 0 at (0, 0): x log(y) is 0 for x = 0, whatever y."""
    return x / np.where((x == 0) * (y == 0), 1, y)


xlogy = Scalar("xlogy", sc.xlogy, lambda v, a, b, y: v * np.log(b), lambda v, a, b, y: v * _ratio(a, b))
xlog1py = Scalar("xlog1py", sc.xlog1py, lambda v, a, b, y: v * np.log1p(b), lambda v, a, b, y: v * _ratio(a, b + 1))
entr = Scalar("entr", sc.entr, lambda v, x, y: -v * (np.log(x) + 1))
rel_entr = Scalar(
    "rel_entr", sc.rel_entr, lambda v, a, b, y: v * (np.log(a / b) + 1), lambda v, a, b, y: -v * _ratio(a, b)
)
kl_div = Scalar("kl_div", sc.kl_div, lambda v, a, b, y: v * np.log(a / b), lambda v, a, b, y: v * (1 - _ratio(a, b)))

cases(entr, positive(3))
cases(xlogy, normal(3, 2), positive(2))
cases(xlog1py, normal(3, 2), positive(2))
for _row in (rel_entr, kl_div):
    cases(_row, positive(3, 2), positive(2))
