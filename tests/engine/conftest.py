"""Counting what the engine does: rule invocations and memory."""

import tracemalloc
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from pullback.primitive import Primitive
from pullback.tape import Tape
from pullback_runners.allocations.arrays import ArrayCounter


@pytest.fixture
def rule_calls(monkeypatch):
    """How often each rule was asked for cotangents inside a block."""

    @contextmanager
    def counting():
        calls: Counter[str] = Counter()
        pull = Tape.pull

        def counted(tape, record, needed, y_bar):
            calls[record.primitive.name] += 1
            return pull(tape, record, needed, y_bar)

        with monkeypatch.context() as patch:
            patch.setattr(Tape, "pull", counted)
            yield calls

    assert Primitive.table
    return counting


@pytest.fixture
def peak_bytes():
    """Peak of memory above the start of a warm call, as tracemalloc sees it."""

    def measured(function):
        function()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            function()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        return peak - before

    return measured


@pytest.fixture
def renew_golden(request):
    return request.config.getoption("--renew-golden")


@dataclass
class CountedArrays:
    """What NumPy's memory handler saw inside a block."""

    arrays: int = 0
    bytes: int = 0
    peak: int = 0


@pytest.fixture
def count_arrays():
    """Arrays that NumPy allocates inside a block: `with count_arrays() as counted: ...`."""

    @contextmanager
    def counting():
        counted, counter = CountedArrays(), ArrayCounter()
        with counter.window():
            yield counted
            seen = counter.read()
        counted.arrays, counted.bytes, counted.peak = seen.allocations, seen.requested_bytes, seen.peak_bytes

    return counting
