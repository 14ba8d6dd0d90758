"""Calls of plans queue their work and return: checked on a device that computes nothing before it is awaited."""

import numpy as np
import pytest

import pullback as pb
from pullback.planning.arena import PlacedBuffers

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from tests.engine.cuda.late import LateDevice  # noqa: E402

from pullback.backends.cuda import program  # noqa: E402
from pullback.backends.cuda.emulation import SharedPieceError  # noqa: E402
from pullback.backends.cuda.state import DeviceState  # noqa: E402
from pullback_runners.workloads.registry import find_workload  # noqa: E402 - beside what loads PyTorch

X = np.random.default_rng(0).normal(size=(6, 6)) / 3
TIERS = ["fused", "stateful"]


def _loss(x):
    return np.sum(np.tanh(np.tanh(x @ x) @ x) ** 2)


def _agree(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def _wrong(late, plan, scales=(1, 2, 3)):
    """True if one of several calls, all queued before any is awaited, gives something else than NumPy."""
    expected = [pb.grad(_loss)(X * scale) for scale in scales]
    results = [plan(late.put(X * scale)) for scale in scales]
    try:
        return not all(np.allclose(late.take(ours), theirs) for ours, theirs in zip(results, expected, strict=True))
    except SharedPieceError:
        return True


@pytest.mark.parametrize("tier", TIERS)
def test_a_warm_call_returns_before_anything_is_computed(tier):
    plan = pb.compile(pb.value_and_grad(_loss), tier=tier)
    with LateDevice() as late:
        x = late.put(X)
        for _ in range(2):
            plan(x)
        late.wait("the end of warming up")
        late.forget()
        value, gradient = plan(x)
        assert np.isnan(late.now(gradient)).all() or tier == "stateful"  # where the call before left its result
        assert late.queue
        assert (late.waits, late.transfers) == ({}, {})
        expected = pb.value_and_grad(_loss)(X)
        _agree(late.take(gradient), expected[1])
        assert late.waits == {"fetch": 1}
        _agree(late.take(value), expected[0])


@pytest.mark.parametrize("tier", TIERS)
def test_calls_that_are_queued_one_behind_the_other_each_give_their_own(tier):
    with LateDevice() as late:
        assert not _wrong(late, pb.compile(pb.grad(_loss), tier=tier))
        plan, x, here = pb.compile(lambda x: np.tanh(x @ x), tier=tier), late.put(X), X
        for _ in range(6):
            x, here = plan(x), np.tanh(here @ here)
        _agree(late.take(x), here)
        plan = pb.compile(pb.grad(_loss), tier=tier)
        for scale in range(1, 6):  # each result is dropped before it is computed
            last = plan(late.put(X * scale))
        _agree(late.take(last), pb.grad(_loss)(X * 5))


#: By workload, the waits of a warm call, which looks at its class numbers at the end.
LOOKS = {
    "mlp_step": {"_local_scalar_dense in _is_set": 1},
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", ["dense_bias_act", "poly9_powers", "mlp_step", "black_scholes"])
def test_workloads_wait_where_positions_are_looked_at_and_nowhere_else(name, tier):
    workload = find_workload(name)
    case = workload.cases("quick")[0]
    function, inputs = workload.differentiated(pb, **dict(case.params)), workload.draw_inputs(case).values()
    plan = pb.compile(function, tier=tier)
    expected = pb.trees.flatten(function(*inputs))[0]
    with LateDevice() as late:
        arguments = [pb.trees.flatten(one) for one in inputs]
        arguments = [
            rebuild(iter([late.put(leaf) if np.ndim(leaf) else leaf for leaf in leaves]))
            for leaves, rebuild in arguments
        ]
        for _ in range(2):
            plan(*arguments)
        late.forget()
        results = plan(*arguments)
        assert late.waits == LOOKS.get(name, {})
        assert late.transfers == {}
        if tier == "stateful" and not plan.summary()["transient"]:
            assert late.requests == {}
        for ours, theirs in zip(pb.trees.flatten(results)[0], expected, strict=True):
            np.testing.assert_allclose(
                late.take(ours), theirs, rtol=1e-4 if theirs.dtype == np.float32 else 1e-9, atol=1e-6
            )


AROUND = np.arange(6.0)


def test_what_is_around_a_function_is_the_only_transfer_and_numbers_are_none():
    plan = pb.compile(pb.grad(lambda x, rate: np.sum(np.exp(rate * x) * AROUND * np.arange(6.0))), tier="stateful")
    with LateDevice() as late:
        x = late.put(X)
        for _ in range(2):
            plan(x, 0.5)
        late.forget()
        result = plan(x, 0.25)
        assert late.transfers == {"copy_ in _put_into": 1}
        assert (late.waits, late.requests) == ({}, {})
        _agree(late.take(result), 0.25 * np.exp(0.25 * X) * AROUND * np.arange(6.0))


# --- planted faults -----------------------------------------------------------------------------------------------------
def test_a_look_at_a_value_is_a_wait_that_names_who_looks():
    plan = pb.compile(pb.grad(lambda x: np.sum(x**2) if np.sum(x) > 0 else np.sum(x**3)), tier="stateful")
    with LateDevice() as late:
        plan(late.put(X))
        late.forget()
        plan(late.put(X))
        assert late.waits == {"_local_scalar_dense in program": 1}


def test_a_result_that_is_taken_from_its_holder_is_found(monkeypatch):
    monkeypatch.setattr(DeviceState, "_may_be_written", staticmethod(lambda *_: True))
    with LateDevice() as late:
        assert _wrong(late, pb.compile(pb.grad(_loss), tier="stateful"))


def test_memory_that_two_values_have_at_once_is_found(monkeypatch):
    monkeypatch.setattr(PlacedBuffers, "add", lambda *_: 0)
    with LateDevice() as late:
        assert _wrong(late, pb.compile(pb.grad(_loss), tier="stateful"))


def test_memory_that_is_freed_before_its_kernel_is_queued_is_found(monkeypatch):
    def dropping(launch, made, scratch, device):
        def run(*read):
            copies = [piece.clone().data_ptr() for piece in read]  # the copies are gone
            given = iter(copies)
            pieces = [None if own is None else torch.empty(own.shape, dtype=torch.float64) for own in made]
            launch([next(given) if piece is None else piece.data_ptr() for piece in pieces])
            results = [piece for piece in pieces if piece is not None]
            return results[0] if len(results) == 1 else results

        return run

    monkeypatch.setattr(program, "_launches", dropping)
    with LateDevice() as late:
        assert _wrong(late, pb.compile(pb.grad(_loss), tier="fused"))
