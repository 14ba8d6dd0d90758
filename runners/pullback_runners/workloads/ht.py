"""Hand tracking: how far the vertices of a posed hand are from measured points, and its Jacobian.

26 numbers theta pose a hand: a rotation by axis and angle (3), a translation (3), and for each of five fingers four angles.
Bones form a tree; a bone's transform is its parent's times its own rest pose times the rotation by its angles:

    absolute_b = absolute_(parent of b) relative_b rotation_b      transform_b = absolute_b inverse_b
    vertex_v = R(theta_0..2) sum over b of weight_bv transform_b (base_v, 1) + theta_3..5

    simple:       e_i = point_i - vertex_(c_i)
    complicated:  e_i = point_i - (u_i0 vertex_(t_0) + u_i1 vertex_(t_1) + (1 - u_i0 - u_i1) vertex_(t_2)),  t the triangle c_i

The sum over bones is one product: (base_v, 1) times weights is a matrix (vertices, 4 bones) that no derivative reaches.
The Jacobian (points, 3, 26) is computed forward, all 26 directions in one batch: they meet in few small matrices before they
reach the vertices. In the complicated variant two columns come first, by u_i0 and u_i1, which are no numbers of anyone
else's: two more directions serve all points.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.workloads.case import Parameter
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

POSE = 26
FINGERS = 5
JOINTS = 3


def joints(bones: int) -> dict[int, tuple[int, int | None]]:
    """The two elements of theta that bend each bone that bends: about x, and about z for the first of a finger."""
    # The wrist comes first and a finger has four bones, of which the first is rigid.
    angles, bent = 6, {}
    for finger in range(FINGERS):
        for joint in range(JOINTS):
            bone = 2 + finger * (JOINTS + 1) + joint
            if bone < bones:
                bent[bone] = (angles, angles + 1 if joint == 0 else None)
            angles += 2 if joint == 0 else 1
    return bent


def by_axis_and_angle(r: Any) -> Any:
    """A rotation matrix; the identity, and no derivative, for angles below 1e-4, as the objective is defined."""
    square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
    turns = square >= 1e-8
    angle = np.sqrt(np.where(turns, square, 1.0))
    x, y, z = r[0] / angle, r[1] / angle, r[2] / angle
    s, c = np.sin(angle), np.cos(angle)
    rows = [
        [x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s],
        [x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s],
        [x * z * (1 - c) - y * s, z * y * (1 - c) + x * s, z * z + (1 - z * z) * c],
    ]
    matrix = np.stack([np.stack(row) for row in rows])
    return np.where(turns, matrix, np.eye(3, dtype=r.dtype))


def by_angles(x: Any, z: Any | None) -> Any:
    """The rotation about x, then about z."""
    zero, one = 0 * x, 0 * x + 1
    s, c = np.sin(x), np.cos(x)
    if z is None:
        rows = [[one, zero, zero], [zero, c, -s], [zero, s, c]]
    else:
        sz, cz = np.sin(z), np.cos(z)
        rows = [[cz, -sz * c, sz * s], [sz, cz * c, -cz * s], [zero, s, c]]
    return np.stack([np.stack(row) for row in rows])


def posed_vertices(parents: tuple[int, ...], *, mirrored: bool) -> Callable[..., Any]:
    """The function of theta and the model's arrays that gives the positions of all vertices (vertices, 3)."""
    bones = len(parents)
    bent = joints(bones)

    def positions(theta: Any, relatives: Any, inverses: Any, base: Any, weights: Any) -> Any:
        absolutes: list[Any] = []
        for bone in range(bones):
            own = relatives[bone][:3]
            if bone in bent:
                about_x, about_z = bent[bone]
                turned = own[:, :3] @ by_angles(theta[about_x], None if about_z is None else theta[about_z])
                own = np.concatenate([turned, own[:, 3:]], axis=1)
            if parents[bone] >= 0:
                before = absolutes[parents[bone]]
                moved = before[:, :3] @ own
                own = np.concatenate([moved[:, :3], moved[:, 3:] + before[:, 3:]], axis=1)
            absolutes.append(own)
        transforms = np.stack([absolutes[bone] @ inverses[bone] for bone in range(bones)])
        mixed = np.reshape(weights[:, :, None] * base[:, None, :], (len(base), bones * 4))
        posed = mixed @ np.reshape(np.swapaxes(transforms, 1, 2), (bones * 4, 3))
        if mirrored:
            posed = posed * np.array([-1.0, 1.0, 1.0], theta.dtype)
        return posed @ by_axis_and_angle(theta[:3]).T + theta[3:6]

    return positions


def distances(parents: tuple[int, ...], *, mirrored: bool, complicated: bool) -> Callable[..., Any]:
    """The function of theta, u, the model's arrays, points and their vertices that gives e (points, 3).

    `at` names a vertex for every point, or three of them.
    """
    positions = posed_vertices(parents, mirrored=mirrored)

    def simple(theta: Any, u: Any, *model: Any) -> Any:  # noqa: ARG001 - one signature for both
        *arrays, points, at = model
        return points - positions(theta, *arrays)[at]

    def on_triangles(theta: Any, u: Any, *model: Any) -> Any:
        *arrays, points, at = model
        hand, first, second = positions(theta, *arrays), u[:, 0:1], u[:, 1:2]
        met = first * hand[at[:, 0]] + second * hand[at[:, 1]] + (1 - first - second) * hand[at[:, 2]]
        return points - met

    return on_triangles if complicated else simple


def jacobian(pb: Any, function: Callable[..., Any], *, complicated: bool) -> Callable[..., Any]:
    """The function of the same arguments that gives e's Jacobian (points, 3, 26 or 28)."""

    def columns(theta: Any, u: Any, *model: Any) -> Any:
        by_theta = pb.jacobian(lambda theta: function(theta, u, *model), mode="forward")(theta)
        if not complicated:
            return by_theta
        by_u = [
            pb.jvp(lambda u: function(theta, u, *model), [u], [np.broadcast_to(direction, u.shape)])[1]
            for direction in np.eye(2, dtype=u.dtype)
        ]
        return np.concatenate([*(column[:, :, None] for column in by_u), by_theta], axis=2)

    return columns


def drawn_parents(bones: int) -> tuple[int, ...]:
    """A forearm, a wrist on it, and fingers of four bones on the wrist."""
    return tuple(-1 if bone == 0 else 0 if bone == 1 else 0 if bone % 4 == 1 else bone - 1 for bone in range(bones))


BONES = 22


@workload(
    wrt="theta",
    quick=grid(variant=("simple", "complicated"), vertices=(100,), points=(50,)),
    standard=grid(variant=("simple", "complicated"), vertices=(544,), points=(100,)),
    full=grid(variant=("simple", "complicated"), vertices=(544, 10_000), points=(100, 1600, 100_000)),
)
def ht(variant: str, vertices: int, points: int) -> Callable[..., Any]:  # noqa: ARG001
    """Jacobian of the distances of a posed hand from measured points with respect to its pose."""
    return distances(drawn_parents(BONES), mirrored=True, complicated=variant == "complicated")


@ht.derivative("jacobian")
def _(pb: Any, function: Callable[..., Any], *, variant: str, **_: Parameter) -> Callable[..., Any]:
    columns = jacobian(pb, function, complicated=variant == "complicated")

    def differentiated(*arguments: Any) -> tuple[Any, tuple[Any, ...]]:
        return function(*arguments), (columns(*arguments),)

    return differentiated


@ht.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], variant: str, vertices: int, points: int) -> Inputs:
    frames = np.tile(np.eye(4), (2, BONES, 1, 1))
    frames[:, :, :3] += 0.3 * rng.standard_normal((2, BONES, 3, 4))
    weights = rng.uniform(size=(vertices, BONES)) ** 4
    corners = (points, 3) if variant == "complicated" else (points,)
    return {
        "theta": (0.5 * rng.standard_normal(POSE)).astype(dtype),
        "u": rng.uniform(0, 0.5, (points, 2)).astype(dtype),
        "relatives": frames[0].astype(dtype),
        "inverses": frames[1].astype(dtype),
        "base": np.concatenate([rng.standard_normal((vertices, 3)), np.ones((vertices, 1))], axis=1).astype(dtype),
        "weights": (weights / weights.sum(1, keepdims=True)).astype(dtype),
        "measured": rng.standard_normal((points, 3)).astype(dtype),
        "at": rng.integers(0, vertices, corners),
    }


@ht.oracle
def _(
    theta: Any,
    u: Any,
    relatives: Any,
    inverses: Any,
    base: Any,
    weights: Any,
    measured: Any,
    at: Any,
    *,
    variant: str,
    **_: int,
) -> ValueAndGradients:
    # The complex step, one number of the pose at a time, bone by bone on matrices of 4 x 4.
    tiny = 1e-30
    bent, parents = joints(BONES), drawn_parents(BONES)

    def turn(axis: int, angle: Any) -> Any:
        matrix = np.eye(4, dtype=complex)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        matrix[i, i] = matrix[j, j] = np.cos(angle)
        matrix[j, i], matrix[i, j] = np.sin(angle), -np.sin(angle)
        return matrix

    def error(theta: Any, u: Any) -> Any:
        absolutes: list[Any] = []
        hand: Any = 0
        for bone in range(BONES):
            own = relatives[bone].astype(complex)
            if bone in bent:
                about_x, about_z = bent[bone]
                own = own @ turn(2, 0 if about_z is None else theta[about_z]) @ turn(0, theta[about_x])
            absolutes.append(own if parents[bone] < 0 else absolutes[parents[bone]] @ own)
            hand = hand + weights[:, bone, None] * (base @ (absolutes[bone] @ inverses[bone]).T)[:, :3]
        hand = hand * np.array([-1, 1, 1])
        angle = np.sqrt(np.sum(theta[:3] ** 2))
        a = theta[:3] / angle
        crossing = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
        rotation = np.eye(3) + np.sin(angle) * crossing + (1 - np.cos(angle)) * crossing @ crossing
        hand = hand @ rotation.T + theta[3:6]
        if variant == "simple":
            return measured - hand[at]
        shares = np.stack([u[:, 0], u[:, 1], 1 - u[:, 0] - u[:, 1]], axis=1)
        return measured - np.einsum("pc,pci->pi", shares, hand[at])

    def along(by_theta: Any, by_u: Any) -> Any:
        return error(theta + tiny * 1j * by_theta, u + tiny * 1j * by_u).imag / tiny

    columns = [along(direction, 0) for direction in np.eye(POSE)]
    if variant == "complicated":
        columns = [along(0, direction) for direction in np.eye(2)] + columns
    return error(theta, u).real, {"jacobian": np.stack(columns, axis=2)}
