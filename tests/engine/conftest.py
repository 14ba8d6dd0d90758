"""Counting what the engine does: rule invocations and memory."""

import tracemalloc
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
from tests.engine.native import cutting

import pullback as pb
from pullback.backends.native import availability
from pullback.core.primitive import Primitive
from pullback.traces.tape import Tape
from pullback_runners.allocations.arrays import ArrayCounter

if not availability.is_available():  # tests/engine/native/test_availability.py says why
    collect_ignore = ["backends/llvm", "nests"]


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


@pytest.fixture
def agrees_everywhere():
    """Compare a function of real arrays with itself: plain value, both modes, two orders, the fused tier, a batch."""

    def check(function, *args, seed=3):
        expected = function(*args)
        weights = np.random.default_rng(seed).normal(size=np.shape(expected))
        wrt = tuple(range(len(args)))

        def loss(*operands):
            return np.sum(weights * function(*operands))

        def gradient_norm(*operands):
            return sum(np.sum(np.square(gradient)) for gradient in pb.grad(loss, wrt=wrt)(*operands))

        np.testing.assert_allclose(pb.vjp(function, *args)[0], expected, rtol=1e-10, atol=1e-12)
        pb.testing.check_grads(function, args)
        pb.testing.check_grads(gradient_norm, args, rtol=1e-4)
        with pb.tier("unfused"):
            eager = pb.grad(loss, wrt=wrt)(*args)
        for ours, theirs in zip(pb.compile(pb.grad(loss, wrt=wrt), tier="fused")(*args), eager, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
        batches = [np.stack([x, 1.25 * x]) for x in args]
        one_by_one = [function(*(batch[example] for batch in batches)) for example in range(2)]
        np.testing.assert_allclose(pb.vmap(function)(*batches), np.stack(one_by_one), rtol=1e-9, atol=1e-12)

    return check


@pytest.fixture
def arrays_in_steady_state():
    """Arrays by NumPy's allocation handler in each of some calls after the first; `held`: with the last result kept."""

    def counted(call, *, held=False):
        counter = ArrayCounter()
        result = None
        counts = []
        for number in range(7):
            if not held:
                result = None
            with counter.window():
                result = call()
            if number > 2:
                counts.append(counter.read().allocations)
        assert result is not None
        return set(counts)

    return counted


@pytest.fixture
def cut_everything(monkeypatch):
    """Native kernels of any size are cut into blocks, of few elements each, as only large ones are otherwise."""
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    cutting.cut_everything(monkeypatch.setattr)
