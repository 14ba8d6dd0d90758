"""ht: distances of a posed hand from measured points, and their Jacobian by pose and, where given, by places on triangles."""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, PreparedFunction, array, listed
from pullback_runners.workloads.ht import POSE, distances, jacobian

MODULE = Module("ht")


def _read(given: Input) -> tuple[tuple[Any, ...], Callable[..., Any], tuple[Any, ...]]:
    data = given["data"]
    model = data["model"]
    parents = tuple(model["parents"])
    bones = len(parents)
    points = array(data, "points", None, 3)
    complicated = len(given["us"]) > 0
    places = array(given, "us", len(points), 2) if complicated else np.zeros((len(points), 2))
    at = np.array(data["correspondences"], dtype=np.int64)
    if complicated:
        at = np.array(model["triangles"], dtype=np.int64)[at]
    base = array(model, "base_positions", None, 4)
    arguments = (
        array(given, "theta", POSE),
        places,
        array(model, "base_relatives", bones, 4, 4),
        array(model, "inverse_base_absolutes", bones, 4, 4),
        base,
        array(model, "weights", len(base), bones),
        points,
        at,
    )
    constants = (parents, bool(model["is_mirrored"]), complicated)
    function = distances(parents, mirrored=constants[1], complicated=complicated)
    return constants, function, arguments


@MODULE.function("objective")
def _(engine: Engine, given: Input) -> PreparedFunction:
    constants, function, arguments = _read(given)
    plan = engine.plan(("ht.objective", constants), lambda: function)
    return PreparedFunction(lambda: plan(*arguments), lambda found: listed(np.ravel(found)))


@MODULE.function("jacobian")
def _(engine: Engine, given: Input) -> PreparedFunction:
    constants, function, arguments = _read(given)
    *_, complicated = constants
    plan = engine.plan(("ht.jacobian", constants), lambda: jacobian(pb, function, complicated=complicated))
    return PreparedFunction(lambda: plan(*arguments), lambda found: listed(np.reshape(found, (-1, found.shape[-1]))))
