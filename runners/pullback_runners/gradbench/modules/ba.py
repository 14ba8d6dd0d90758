"""ba: residuals of bundle adjustment and their sparse Jacobian.

The eval sends one camera, point, weight and feature, which stand for all of them; no use is made of their being equal: every
observation is computed from its own. It reads a few elements of the result, which is complete all the same.
"""

from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, PreparedFunction, array, whole
from pullback_runners.workloads.ba import CAMERA, COLUMNS, jacobian_blocks, joined, residuals

MODULE = Module("ba")

SHOWN = 2 * COLUMNS
"""The number of leading elements of each list that are sent, in addition to the last one."""


def _read(given: Input) -> tuple[tuple[int, int, int], tuple[Any, ...]]:
    n, m, p = (whole(given, name) for name in ("n", "m", "p"))
    cameras = np.tile(array(given, "cam", CAMERA), (n, 1))
    points = np.tile(array(given, "x", 3), (m, 1))
    weights, features = np.full(p, array(given, "w")), np.tile(array(given, "feat", 2), (p, 1))
    observations = np.arange(p)
    return (n, m, p), (cameras, points, weights, features, observations % n, observations % m)


@MODULE.function("objective")
def _(engine: Engine, given: Input) -> PreparedFunction:
    (_, _, p), arguments = _read(given)
    plan = engine.plan("ba.objective", lambda: residuals)

    def output(found: Any) -> Any:
        errors, weighting = found
        return {
            "reproj_error": {"elements": errors[0].tolist(), "repeated": p},
            "w_err": {"element": float(weighting[0]), "repeated": p},
        }

    return PreparedFunction(lambda: plan(*arguments), output)


@MODULE.function("jacobian")
def _(engine: Engine, given: Input) -> PreparedFunction:
    (n, m, p), arguments = _read(given)
    plan = engine.plan("ba.jacobian", lambda: jacobian_blocks(pb))
    structure = Structure(n, m, *arguments[-2:])

    def compressed() -> dict[str, list[Any]]:
        # The structure is made anew in every call, as the hand-written tools do it.
        blocks, weighting = plan(*arguments)
        structure.make()
        return {
            "rows": [structure.row_starts],
            "cols": [structure.of_errors, structure.of_weights],
            "vals": [joined(blocks, p), weighting],
        }

    def output(found: dict[str, list[Any]]) -> Any:
        return {name: [*_first(parts), parts[-1].item(-1)] for name, parts in found.items()}

    return PreparedFunction(compressed, output)


class Structure:
    """The positions of the elements of the compressed Jacobian: two rows of 15 for every observation, then one of one element.

    The memory is the same in every call: its pages cost more to get than its numbers to compute.
    """

    def __init__(self, n: int, m: int, of_camera: Any, of_point: Any) -> None:
        p = len(of_camera)
        self._camera, self._point, self._columns = of_camera, of_point, (CAMERA * n, CAMERA * n + 3 * m)
        self.row_starts = np.empty(3 * p + 1, np.int32)
        """The begin of each row, and the end of the last one."""
        self.of_errors = np.empty((p, 2, COLUMNS), np.int32)
        """Columns of the elements of e's rows."""
        self.of_weights = np.empty(p, np.int32)
        """Columns of the elements of the weights' rows."""

    def make(self) -> None:
        """Compute all of it."""
        p, (points, weights) = len(self.of_weights), self._columns
        long = 2 * p * COLUMNS
        self.row_starts[: 2 * p] = np.arange(0, long, COLUMNS)
        self.row_starts[2 * p :] = np.arange(long, long + p + 1)
        self.of_weights[:] = np.arange(weights, weights + p)
        camera, point = (CAMERA * self._camera).astype(np.int32), (points + 3 * self._point).astype(np.int32)
        first = self.of_errors[:, 0]
        np.add(camera[:, None], np.arange(CAMERA, dtype=np.int32), out=first[:, :CAMERA])
        np.add(point[:, None], np.arange(3, dtype=np.int32), out=first[:, CAMERA:-1])
        first[:, -1] = self.of_weights
        self.of_errors[:, 1] = first


def _first(parts: list[Any]) -> list[Any]:
    """The leading elements of arrays that lie one behind the other."""
    leading: list[Any] = []
    for part in parts:
        leading.extend(part.reshape(-1)[: SHOWN - len(leading)].tolist())
    return leading
