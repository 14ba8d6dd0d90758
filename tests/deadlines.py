"""A deadline for every test: one that waits for ever fails, with the stack of where it waits, and the run goes on.

Where the main thread is inside of C code that no signal interrupts, `faulthandler_timeout` ends the worker later.
"""

import signal
import threading
from contextlib import contextmanager

import pytest

MOST_S = 300
"""For the setup of a test, the test itself and its teardown each; a test marked `long(most_s=…)` has a deadline of its own."""
AGAIN_S = 30
"""Seconds until it is ended again: fixtures that tidy up may wait for ever as well."""


@contextmanager
def _deadline(item, what):
    marker = item.get_closest_marker("long")
    most_s = marker.kwargs.get("most_s", MOST_S) if marker else MOST_S
    is_real = item.get_closest_marker("real") is not None
    if is_real or item.config.getoption("usepdb") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_):
        pytest.fail(f"{what} of {item.nodeid} was not over after {most_s} s; the stack says what it waited for")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, most_s, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Of what a test needs."""
    with _deadline(item, "the setup"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Of the test."""
    with _deadline(item, "the call"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """Of what tidies up."""
    with _deadline(item, "the teardown"):
        return (yield)
