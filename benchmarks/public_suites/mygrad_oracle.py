"""A pytest plugin for MyGrad's own test-suite: this engine's gradients in the place of its numerical ones.

MyGrad's factories of tests draw arguments and compare the gradient of a MyGrad function with a numerical one of the NumPy
function that it stands for. Here the latter is the gradient of this engine, on the tape and as a native plan. Tests that
compare no gradient say nothing about this engine and are left out.
"""

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from benchmarks.public_suites.pytest_recording import OUTCOMES

import pullback as pb

PLANNED = 10
"""One example in so many is computed as a native plan too: shapes differ from one to the next, and each is compiled."""

_compared = 0


def gradients(
    f: Any, *args: Any, back_grad: Any, vary_ind: Any = None, kwargs: Any = None, **numerical: Any
) -> tuple[Any, ...]:
    """The gradients of `f(*args, **kwargs)` in the form of MyGrad's `numerical_gradient`, the same from both tiers."""
    del vary_ind, numerical
    global _compared  # noqa: PLW0603 - pytest's hooks and the suite meet nowhere else
    _compared += 1

    def function(*values: Any) -> Any:
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
