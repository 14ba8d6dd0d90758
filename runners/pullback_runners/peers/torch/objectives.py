"""Objectives of GradBench and ADBench, written for PyTorch: those without loops of thousands of steps."""

from typing import Any

import numpy as np

from pullback_runners.peers.torch.adapter import PEER, tensor_of
from pullback_runners.workloads import Inputs
from pullback_runners.workloads.det import minors
from pullback_runners.workloads.gmm import prior_constant
from pullback_runners.workloads.gmm_likelihood import positions_below_diagonal
from pullback_runners.workloads.llsq import points


def _mixture(torch: Any, d: int, k: int, n: int, prior_sign: float) -> Any:
    rows, columns = (tensor_of(torch, part) for part in positions_below_diagonal(d))
    constant = prior_constant(d, k, n, gamma=1.0, m=0, prior_sign=prior_sign)

    def posterior(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> Any:  # noqa: E741 - the letter of the formula
        roots = x.new_zeros((k, d, d))
        roots[:, rows, columns] = l
        roots = roots + torch.diag_embed(torch.exp(q))
        scaled = torch.einsum("kij,nkj->nki", roots, x[:, None, :] - mu)
        exponents = alpha + q.sum(1) - 0.5 * (scaled**2).sum(2)
        likelihood = torch.logsumexp(exponents, 1).sum() - n * torch.logsumexp(alpha, 0)
        return likelihood - prior_sign * 0.5 * (roots**2).sum() + constant

    return posterior


@PEER.form("gmm")
def _(torch: Any, /, *, d: int, k: int, n: int) -> Any:
    return _mixture(torch, d, k, n, 1.0)


@PEER.form("gmm_adbench")
def _(torch: Any, /, *, d: int, k: int, n: int) -> Any:
    return _mixture(torch, d, k, n, -1.0)


@PEER.form("lse")
def _(torch: Any, /, **_: Any) -> Any:
    return lambda x: torch.logsumexp(x, 0)


@PEER.form("llsq", with_inputs=True)
def _(torch: Any, inputs: Inputs, /, *, n: int, m: int) -> Any:
    t = tensor_of(torch, points(n).astype(inputs["x"].dtype))
    signs = torch.sign(t)

    def distance(x: Any) -> Any:
        value = torch.zeros_like(t)
        for j in range(m - 1, -1, -1):
            value = value * t + x[j]
        return 0.5 * ((signs - value) ** 2).sum()

    return distance


@PEER.form("det")
def _(torch: Any, /, *, n: int) -> Any:
    tables = [
        tuple(tensor_of(torch, table) for table in (np.where(np.arange(size) % 2, -1, 1), columns, needed))
        for size, (columns, needed) in enumerate(minors(n)[1:], start=2)
    ]

    def expand(a: Any) -> Any:
        found = a[n - 1]
        for size, (signs, columns, needed) in enumerate(tables, start=2):
            found = (signs * a[n - size][columns] * found[needed]).sum(1)
        return found[0]

    return expand
