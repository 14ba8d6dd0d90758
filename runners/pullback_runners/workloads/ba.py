"""Bundle adjustment: how far points, seen by cameras, are from where they were seen, and its sparse Jacobian.

A camera is [r (3), C (3), f, u0 (2), k (2)]: a rotation by its axis times its angle, a centre, a focal length, a principal
point and a radial distortion. An observation is a camera, a point X, a weight w and a feature m (2):

    P = R(r) (X - C)    p = (P_0, P_1) / P_2    e = w (f p (1 + k_0 |p|^2 + k_1 |p|^4) + u0 - m)    and    1 - w^2

The Jacobian has, for every observation, two rows of 15 numbers (11 of its camera, 3 of its point, 1 of its weight), and
then -2 w. Element by element e_0 depends on numbers of its own observation alone, so one sweep back from sum(e_0) gives
the first rows of all observations and one from sum(e_1) the second: 2 sweeps, not 15 directions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

CAMERA = 11
COLUMNS = CAMERA + 3 + 1
"""Numbers that an observation depends on."""


def rotated(r: list[Any], x: list[Any]) -> list[Any]:
    """The formula of Rodrigues for components of any shape; to first order for a rotation by exactly nothing."""
    square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
    turns = square > 0
    angle = np.sqrt(np.where(turns, square, 1.0))
    cosine, sine, inverse = np.cos(angle), np.sin(angle), 1.0 / angle
    axis = [component * inverse for component in r]
    along = (axis[0] * x[0] + axis[1] * x[1] + axis[2] * x[2]) * (1.0 - cosine)
    across, first = _cross(axis, x), _cross(r, x)
    return [np.where(turns, x[i] * cosine + across[i] * sine + axis[i] * along, x[i] + first[i]) for i in range(3)]


def _cross(a: list[Any], b: list[Any]) -> list[Any]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def reprojection_error(numbers: list[Any], feature: list[Any]) -> tuple[Any, Any]:
    """Both components of e; `numbers` are the 15 an observation depends on."""
    camera, point, weight = numbers[:CAMERA], numbers[CAMERA : CAMERA + 3], numbers[-1]
    seen = rotated(camera[:3], [point[i] - camera[3 + i] for i in range(3)])
    u, v = seen[0] / seen[2], seen[1] / seen[2]
    square = u * u + v * v
    scale = camera[6] * (1.0 + camera[9] * square + camera[10] * square * square)
    return weight * (scale * u + camera[7] - feature[0]), weight * (scale * v + camera[8] - feature[1])


def gathered(cameras: Any, points: Any, weights: Any, of_camera: Any, of_point: Any) -> Any:
    """The 15 numbers that every observation depends on, a row for each (p, 15)."""
    return np.concatenate([cameras[of_camera], points[of_point], weights[:, None]], axis=1)


def _errors(rows: Any, features: Any) -> tuple[Any, Any]:
    return reprojection_error([rows[:, i] for i in range(COLUMNS)], [features[:, 0], features[:, 1]])


def residuals(cameras: Any, points: Any, weights: Any, features: Any, of_camera: Any, of_point: Any) -> tuple[Any, Any]:
    """Errors e of all observations (p, 2), and 1 - w^2 (p,)."""
    rows = gathered(cameras, points, weights, of_camera, of_point)
    return np.stack(_errors(rows, features), axis=1), 1.0 - weights * weights


BLOCK = 256
"""Observations at a time: what is computed on the way to their rows, some eighty arrays, stays in a processor's cache. At
225911 observations that is 15 ms instead of 54, and memory for the rows alone instead of three times as much."""


def jacobian_blocks(pb: Any) -> Callable[..., tuple[Any, Any]]:
    """The function of the same arguments that gives rows of e's Jacobian by blocks, and -2 w (p,).

    The last block is filled up. `joined` makes one array of all blocks, which is a view where a compiled function would
    make copies.
    """

    def of_block(rows: Any, features: Any) -> Any:
        both = [pb.grad(lambda rows, which=which: np.sum(_errors(rows, features)[which]))(rows) for which in (0, 1)]
        return np.stack(both, axis=1)

    def values(
        cameras: Any, points: Any, weights: Any, features: Any, of_camera: Any, of_point: Any
    ) -> tuple[Any, Any]:
        p = len(weights)
        size = min(BLOCK, p)
        blocks = -(-p // size)

        def filled(array: Any) -> Any:
            """The array in blocks, padded with the last observation."""
            missing = [array[-1:]] * (blocks * size - p)
            whole = np.concatenate([array, *missing]) if missing else array
            return np.reshape(whole, (blocks, size, *array.shape[1:]))

        def step(_: Any, block: Any) -> tuple[Any, Any]:
            weights, features, of_camera, of_point = block
            return _, of_block(gathered(cameras, points, weights, of_camera, of_point), features)

        _, rows = pb.scan(step, 0.0, tuple(filled(each) for each in (weights, features, of_camera, of_point)))
        return rows, pb.grad(lambda weights: np.sum(1.0 - weights * weights))(weights)

    return values


def joined(blocks: Any, p: int) -> Any:
    """Rows of p observations (p, 2, 15), of blocks that hold at least so many."""
    return np.reshape(blocks, (-1, 2, COLUMNS))[:p]


@workload(
    wrt=("cameras", "points", "weights"),
    quick=grid(n=(10,), m=(40,), p=(200,)),
    standard=grid(n=(49,), m=(776,), p=(3184,)),
    full=grid(n=(49,), m=(7776,), p=(31_843,)) + grid(n=(257,), m=(65_132,), p=(225_911,)),
)
def ba(n: int, m: int, p: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """Sparse Jacobian of bundle adjustment with respect to cameras, points and weights."""
    return residuals


@ba.derivative("reprojection", "weighting")
def _(pb: Any, function: Callable[..., Any], **_: int) -> Callable[..., Any]:
    values = jacobian_blocks(pb)

    def differentiated(*arguments: Any) -> tuple[Any, tuple[Any, ...]]:
        errors, _ = function(*arguments)
        blocks, weighting = values(*arguments)
        return errors, (joined(blocks, len(errors)), weighting)

    return differentiated


@ba.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int, m: int, p: int) -> Inputs:
    cameras = np.concatenate(
        [
            rng.uniform(-1.5, 1.5, (n, 3)),
            rng.uniform(20, 60, (n, 3)),
            rng.uniform(200, 500, (n, 1)),
            rng.uniform(-10, 10, (n, 2)),
            rng.uniform(-0.05, 0.05, (n, 2)),
        ],
        axis=1,
    )
    return {
        "cameras": cameras.astype(dtype),
        "points": rng.uniform(-5, 5, (m, 3)).astype(dtype),
        "weights": rng.uniform(0.2, 1, p).astype(dtype),
        "features": rng.uniform(-500, 500, (p, 2)).astype(dtype),
        "of_camera": np.arange(p) % n,
        "of_point": np.arange(p) % m,
    }


@ba.oracle
def _(
    cameras: Any, points: Any, weights: Any, features: Any, of_camera: Any, of_point: Any, **_: int
) -> ValueAndGradients:
    # The complex step, one of 15 numbers at a time, on rotation matrices: cos I + sin [a] + (1 - cos) a a^T.
    rows = np.concatenate([cameras[of_camera], points[of_point], weights[:, None]], axis=1)
    tiny = 1e-30

    def errors(rows: Any) -> Any:
        r, centre, f, principal, k = np.split(rows[:, :CAMERA], [3, 6, 7, 9], axis=1)
        angle = np.sqrt(np.sum(r**2, axis=1))
        a = r / angle[:, None]
        zero = 0 * a[:, 0]
        crossing = np.stack([zero, -a[:, 2], a[:, 1], a[:, 2], zero, -a[:, 0], -a[:, 1], a[:, 0], zero], axis=1)
        rotation = (
            np.cos(angle)[:, None, None] * np.eye(3)
            + np.sin(angle)[:, None, None] * crossing.reshape(-1, 3, 3)
            + (1 - np.cos(angle))[:, None, None] * a[:, :, None] * a[:, None, :]
        )
        seen = np.einsum("pij,pj->pi", rotation, rows[:, CAMERA:-1] - centre)
        flat = seen[:, :2] / seen[:, 2:]
        square = np.sum(flat**2, axis=1, keepdims=True)
        return rows[:, -1:] * (f * flat * (1 + k[:, :1] * square + k[:, 1:] * square**2) + principal - features)

    jacobian = np.empty((len(rows), 2, COLUMNS))
    for column in range(COLUMNS):
        moved = rows.astype(complex)
        moved[:, column] += tiny * 1j
        jacobian[:, :, column] = errors(moved).imag / tiny
    return errors(rows), {"reprojection": jacobian, "weighting": -2 * weights}
