"""One step of Newton's method on the cost of k-means: the gradient over the diagonal of the Hessian.

    cost(c) = sum over i of min over j of |x_i - c_j|^2      dir = J / diag(H)

x (n, d), c (k, d). H is diagonal, so its product with a vector of ones is its diagonal: forward mode over reverse mode.
In closed form dir_j = c_j - (mean of the points nearest to c_j). Which centroid is nearest is a choice, not a value: it is
made once, for constant centroids, and the cost is a sum over what was chosen. Of equally near ones it is the first.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt="centroids",
    quick=grid(k=(10,), n=(200,), d=(8,)),
    standard=grid(k=(10,), n=(1000,), d=(8,)) + grid(k=(100,), n=(10_000,), d=(8,)),
    full=grid(k=(10, 100, 1000), n=(1000, 10_000), d=(8, 16)),
)
def kmeans(k: int, n: int, d: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """Newton's step of the cost of k-means with respect to the centroids."""

    def cost(centroids: Any, points: Any) -> Any:
        return np.sum((points - centroids[nearest(pb.stop_gradient(centroids), points)]) ** 2)

    return cost


def nearest(centroids: Any, points: Any) -> Any:
    """The nearest centroid of each point (n,).

    One centroid at a time for all points, keeping the nearest so far: the n k distances are never in memory, which takes a
    quarter of the time of doing them all and searching them.
    """
    columns = points.T + 0.0  # a number of every point side by side, as the loop reads them

    def step(best: Any, each: Any) -> tuple[Any, None]:
        (distance, which), (centroid, number) = best, each
        here = np.sum((columns - centroid[:, None]) ** 2, axis=0)
        closer = here < distance
        return (np.where(closer, here, distance), np.where(closer, number, which)), None

    n, k = len(points), len(centroids)
    start = np.full(n, np.inf, points.dtype), np.zeros(n, np.int64)
    (_, which), _ = pb.scan(step, start, (centroids, np.arange(k)))
    return which


@kmeans.derivative("dir")
def _(pb: Any, function: Callable[..., Any], k: int, n: int, d: int) -> Callable[..., Any]:  # noqa: ARG001
    def newton(centroids: Any, points: Any) -> tuple[Any, tuple[Any, ...]]:
        def differentiated(centroids: Any) -> Any:
            return pb.value_and_grad(function)(centroids, points)

        ones = np.ones((k, d), points.dtype)
        (value, gradient), (_, curvature) = pb.jvp(differentiated, [centroids], [ones])
        return value, (gradient / curvature,)

    return newton


@kmeans.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], k: int, n: int, d: int) -> Inputs:
    points = rng.uniform(size=(n, d)).astype(dtype)
    # Moved a little away from points of their own, so that every cluster has some and no distance is zero.
    centroids = points[-k:] + rng.uniform(-1e-3, 1e-3, size=(k, d)).astype(dtype)
    return {"centroids": centroids, "points": points}


@kmeans.oracle
def _(centroids: Any, points: Any, *, k: int, n: int, d: int) -> ValueAndGradients:
    # Cluster by cluster: the step leads from the mean of its points.
    nearest = np.array([np.argmin(np.sum((centroids - point) ** 2, axis=1)) for point in points])
    step, cost = np.empty((k, d)), 0.0
    for cluster in range(k):
        own = points[nearest == cluster]
        step[cluster] = centroids[cluster] - own.mean(0)
        cost += np.sum((own - centroids[cluster]) ** 2)
    assert len(nearest) == n  # noqa: S101 - an invariant of our own inputs
    return cost, {"dir": step}
