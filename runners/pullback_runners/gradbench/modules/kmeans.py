"""kmeans: the cost of centroids, and Newton's step for them."""

from typing import Any

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, PreparedFunction, array, listed
from pullback_runners.workloads.kmeans import kmeans

MODULE = Module("kmeans")


def _read(given: Input) -> tuple[dict[str, int], tuple[Any, Any]]:
    points = array(given, "points", None, None)
    n, d = points.shape
    centroids = array(given, "centroids", None, d)
    return {"k": len(centroids), "n": n, "d": d}, (centroids, points)


@MODULE.function("cost")
def _(engine: Engine, given: Input) -> PreparedFunction:
    sizes, arguments = _read(given)
    plan = engine.plan(("kmeans.cost", *sizes.values()), lambda: kmeans(**sizes))
    return PreparedFunction(lambda: plan(*arguments), float)


@MODULE.function("dir")
def _(engine: Engine, given: Input) -> PreparedFunction:
    sizes, arguments = _read(given)

    def newton() -> Any:
        differentiated = kmeans.differentiated(pb, **sizes)
        return lambda centroids, points: differentiated(centroids, points)[1][0]

    plan = engine.plan(("kmeans.dir", *sizes.values()), newton)
    return PreparedFunction(lambda: plan(*arguments), listed)
