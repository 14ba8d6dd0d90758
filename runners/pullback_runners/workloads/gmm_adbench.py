"""The mixture of Gaussians of `gmm` with the prior subtracted, L - prior, which is how ADBench defines its objective.

ADBench's inputs hold each root in one row, diagonal first; here they are q and l as in `gmm`.
"""

from collections.abc import Callable
from typing import Any

from pullback_runners.workloads.gmm import by_component, draw_mixture, log_posterior
from pullback_runners.workloads.registry import ValueAndGradients, grid, workload


@workload(
    wrt=("alpha", "mu", "q", "l"),
    quick=grid(d=(2,), k=(5,), n=(100,)),
    standard=grid(d=(10,), k=(25,), n=(1000,)),
    full=grid(d=(2, 10, 20, 32, 64), k=(5, 25, 100), n=(1000,)),
)
def gmm_adbench(d: int, k: int, n: int) -> Callable[..., Any]:
    """Mixture of Gaussians as ADBench defines it, with respect to weights, means and precisions."""
    return log_posterior(d, k, n, prior_sign=-1.0)


gmm_adbench.inputs(draw_mixture)


@gmm_adbench.oracle
def _(alpha: Any, mu: Any, q: Any, l: Any, x: Any, **_: int) -> ValueAndGradients:  # noqa: E741
    return by_component(alpha, mu, q, l, x, gamma=1.0, m=0, prior_sign=-1.0)
