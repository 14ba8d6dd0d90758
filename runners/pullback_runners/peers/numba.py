"""Numba: gradients written by hand as loops and compiled, where loops are what one would write."""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback_runners.errors import VariantError
from pullback_runners.peers.peer import Peer, PreparedCase
from pullback_runners.workloads import Case, Inputs, Workload


class _Numba(Peer):
    name = "numba"
    packages = ("numba",)

    def offers(self, workload: Workload) -> bool:
        return workload.name in _LOOPS

    def prepare(self, workload: Workload, case: Case, inputs: Inputs) -> PreparedCase:
        reason = self.available()
        if reason is not None or not self.offers(workload):
            raise VariantError("unavailable", f"peer numba on {case.name}: {reason or 'not written'}")
        numba: Any = importlib.import_module("numba")
        # Contracting and reordering sums is what our own code may do; NaN and infinity are kept.
        compiled = numba.njit(_LOOPS[workload.name], fastmath={"contract", "reassoc"})

        def differentiated(result: Any) -> tuple[Any, dict[str, Any]]:
            value, *gradients = result
            return value, {
                name: np.asarray(gradient, case.dtype) for name, gradient in zip(workload.wrt, gradients, strict=True)
            }

        return PreparedCase(partial(compiled, *inputs.values()), differentiated)


def _mul_restore(a: Any, b: Any, c: Any) -> Any:
    m, k = a.shape
    n = b.shape[1]
    before = c.copy()
    c[:] = 0.0
    for i in range(m):
        for p in range(k):
            factor = a[i, p]
            for j in range(n):
                c[i, j] += factor * b[p, j]
    value = 0.0
    for i in range(m):
        for j in range(n):
            value += c[i, j] * c[i, j]
    a_bar, b_bar = np.empty_like(a), np.zeros_like(b)
    for i in range(m):
        for p in range(k):
            total = 0.0
            factor = 2.0 * a[i, p]
            for j in range(n):
                total += c[i, j] * b[p, j]
                b_bar[p, j] += factor * c[i, j]
            a_bar[i, p] = 2.0 * total
    c[:] = before
    return value, a_bar, b_bar


def _poly9(x: Any, c0: Any, c1: Any, c2: Any, c3: Any, c4: Any, c5: Any, c6: Any, c7: Any, c8: Any, c9: Any) -> Any:
    k0, k1, k2, k3, k4 = c0.item(), c1.item(), c2.item(), c3.item(), c4.item()
    k5, k6, k7, k8, k9 = c5.item(), c6.item(), c7.item(), c8.item(), c9.item()
    value, slope = 0.0, 0.0
    for i in range(len(x)):
        t = x[i]
        value += ((((((((k9 * t + k8) * t + k7) * t + k6) * t + k5) * t + k4) * t + k3) * t + k2) * t + k1) * t + k0
        slope += t * t
    return value, slope


_LOOPS: dict[str, Callable[..., Any]] = {
    "mul_restore": _mul_restore,
    "poly9_broadcast": _poly9,
    "poly9_powers": _poly9,
}

PEER = _Numba()
