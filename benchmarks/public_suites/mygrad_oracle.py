"""A pytest plugin for MyGrad's own test-suite: this engine's gradients in the place of its numerical ones.

MyGrad's factories of tests draw arguments and compare the gradient of a MyGrad function with a numerical one of the NumPy
function that it stands for. Here the latter is the gradient of this engine, on the tape and as a native plan. Tests that
compare no gradient say nothing about this engine and are left out. NumPy functions that call `np.asarray` get
`pb.numpy.asarray`, as the error of a traced value asks for.
"""

import importlib
import os
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import hypothesis
import numpy as np
import pytest
from benchmarks.public_suites.pytest_recording import OUTCOMES

import pullback as pb
from pullback.core.primitive import TracedValue

PLANNED = 10
"""One example in so many is computed as a native plan too: shapes differ from one to the next, and each is compiled."""

#: No deadline: the time that an example takes says nothing about a gradient.
hypothesis.settings.register_profile(
    "oracle", max_examples=20, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
)
os.environ.setdefault("HYPOTHESIS_PROFILE", "oracle")  # the suite's conftest loads it

_compared = 0
_asarray = np.asarray


def asarray(x: Any, *args: Any, **keywords: Any) -> Any:
    """NumPy's `asarray`, and ours for traced values."""
    return pb.numpy.asarray(x) if isinstance(x, TracedValue) else _asarray(x, *args, **keywords)


def gradients(
    f: Any, *args: Any, back_grad: Any, vary_ind: Any = None, kwargs: Any = None, **numerical: Any
) -> tuple[Any, ...]:
    """The gradients of `f(*args, **kwargs)` in the form of MyGrad's `numerical_gradient`, the same from both tiers."""
    del vary_ind, numerical
    global _compared  # noqa: PLW0603 - pytest's hooks and the suite meet nowhere else
    _compared += 1

    def function(*values: Any) -> Any:
        with patch.object(np, "asarray", asarray):
            return f(*values, **(kwargs or {}))

    run: Any = pb.vjp(function, *args)
    value, pullback = run
    found: tuple[Any, ...] = pullback(np.reshape(back_grad, np.shape(value)))
    if _compared % PLANNED == 0:
        planned = pb.compile(function, tier="native").vjp(*args)[1]
        for own, again in zip(found, planned(np.reshape(back_grad, np.shape(value))), strict=True):
            np.testing.assert_allclose(again, own, rtol=1e-9, atol=1e-9, err_msg="the tiers unfused and native differ")
    return found


def pytest_collection_modifyitems() -> None:
    """Replace the numerical gradients that the factories look up when a test runs."""
    uber = importlib.import_module("tests.wrappers.uber")  # in the folder where pytest was started

    for name in ("numerical_gradient", "numerical_gradient_full", "finite_difference"):
        setattr(uber, name, gradients)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    """Leave a test out that passes and compared nothing."""
    before = _compared
    result = yield
    if _compared == before:
        OUTCOMES.pop(item.nodeid, None)
    return result
