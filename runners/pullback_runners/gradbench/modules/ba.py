"""ba: residuals of bundle adjustment and their sparse Jacobian.

The eval sends one camera, point, weight and feature, which stand for all of them; no use is made of their being equal: every
observation is computed from its own. It reads a few elements of the result, which is complete all the same.
"""

from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, Prepared, array, whole
from pullback_runners.workloads.ba import CAMERA, COLUMNS, jacobian_values, residuals

MODULE = Module("ba")

SHOWN = 2 * COLUMNS
"""As many leading elements of each list are sent, and the last one."""


def _read(given: Input) -> tuple[tuple[int, int, int], tuple[Any, ...]]:
    n, m, p = (whole(given, name) for name in ("n", "m", "p"))
    cameras = np.tile(array(given, "cam", CAMERA), (n, 1))
    points = np.tile(array(given, "x", 3), (m, 1))
    weights, features = np.full(p, array(given, "w")), np.tile(array(given, "feat", 2), (p, 1))
    observations = np.arange(p)
    return (n, m, p), (cameras, points, weights, features, observations % n, observations % m)


@MODULE.function("objective")
def _(engine: Engine, given: Input) -> Prepared:
    (_, _, p), arguments = _read(given)
    plan = engine.plan("ba.objective", lambda: residuals)

    def output(found: Any) -> Any:
        errors, weighting = found
        return {
            "reproj_error": {"elements": errors[0].tolist(), "repeated": p},
            "w_err": {"element": float(weighting[0]), "repeated": p},
        }

    return Prepared(lambda: plan(*arguments), output)


@MODULE.function("jacobian")
def _(engine: Engine, given: Input) -> Prepared:
    (n, m, p), arguments = _read(given)
    plan = engine.plan("ba.jacobian", lambda: jacobian_values(pb))
    *_, of_camera, of_point = arguments

    def compressed() -> dict[str, list[Any]]:
        # The structure is made anew in every call, as the hand-written tools do it.
        reprojection, weighting = plan(*arguments)
        return {
            "rows": [row_starts(p)],
            "cols": [*columns(n, m, of_camera, of_point)],
            "vals": [reprojection, weighting],
        }

    def output(found: dict[str, list[Any]]) -> Any:
        return {name: [*_first(parts), parts[-1].item(-1)] for name, parts in found.items()}

    return Prepared(compressed, output)


def row_starts(p: int) -> Any:
    """Where the rows of the compressed Jacobian begin, and where the last one ends: 2 p long ones and p of one element."""
    starts = np.empty(3 * p + 1, np.int32)
    starts[: 2 * p] = np.arange(0, 2 * p * COLUMNS, COLUMNS)
    starts[2 * p :] = np.arange(2 * p * COLUMNS, 2 * p * COLUMNS + p + 1)
    return starts


def columns(n: int, m: int, of_camera: Any, of_point: Any) -> tuple[Any, Any]:
    """Columns of the rows of e (p, 2, 15), and of the rows of the weights (p,)."""
    p = len(of_camera)
    block = np.empty((p, 2, COLUMNS), np.int32)
    of_weight = np.arange(CAMERA * n + 3 * m, CAMERA * n + 3 * m + p, dtype=np.int32)
    first = block[:, 0]
    np.add(CAMERA * of_camera[:, None], np.arange(CAMERA), out=first[:, :CAMERA], casting="unsafe")
    np.add(3 * of_point[:, None], CAMERA * n + np.arange(3), out=first[:, CAMERA:-1], casting="unsafe")
    first[:, -1] = of_weight
    block[:, 1] = first
    return block, of_weight


def _first(parts: list[Any]) -> list[Any]:
    """The leading elements of arrays that lie one behind the other."""
    leading: list[Any] = []
    for part in parts:
        leading.extend(part.reshape(-1)[: SHOWN - len(leading)].tolist())
    return leading
