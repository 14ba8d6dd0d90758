"""Plans of the tier `stateful` on a device: frames for each run, thread and stream, and results that nobody's are overwritten."""

import threading
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.planning.arena import PlacedBuffers

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from pullback.backends.cuda import program  # noqa: E402 - loads PyTorch
from pullback.backends.cuda.state import DeviceState  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 6))


def _loss(x):
    return np.sum(np.tanh(np.tanh(x @ x) @ x) ** 2)


def _expected(x):
    return pb.grad(_loss)(x)


def _plan():
    return pb.compile(pb.grad(_loss), tier="stateful")


def _agree(ours, theirs):
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    "holding",
    [
        lambda y: y,
        lambda y: y[2:, 1],
        lambda y: y.detach(),
        lambda y: y.numpy(),
        lambda y: y.numpy()[1:],
        lambda y: y.__dlpack__(),
        lambda y: y.untyped_storage(),
        lambda y: [memoryview(y.numpy())],
    ],
    ids=["name", "view", "detached", "array", "view of an array", "capsule", "storage", "buffer"],
)
def test_a_result_that_is_held_is_never_written_to_again(holding):
    plan = _plan()
    for _ in range(3):
        plan(torch.tensor(X))
    result = plan(torch.tensor(X))
    address = result.data_ptr()
    held = holding(result)
    copy = result.clone()
    del result
    for scale in (2, 3, 4):
        assert plan(torch.tensor(X * scale)).data_ptr() != address
    if hasattr(held, "shape"):
        assert np.isin(np.asarray(held), copy.numpy()).all()
    del held
    addresses = {plan(torch.tensor(X)).data_ptr() for _ in range(4)}
    assert address in addresses or len(addresses) == 1


def test_a_result_that_a_weak_reference_may_come_back_to_is_not_written_to():
    plan = _plan()
    kept = plan(torch.tensor(X))
    reference = weakref.ref(kept)
    address = kept.data_ptr()
    del kept
    assert reference() is not None  # the frame has it
    assert plan(torch.tensor(2 * X)).data_ptr() != address


def test_a_result_that_the_caller_changed_is_as_it_was_made_the_next_time():
    plan = _plan()
    for change in (torch.Tensor.t_, lambda y: y.resize_(2, 2), lambda y: y.requires_grad_(), lambda y: y.fill_(7)):
        y = plan(torch.tensor(X))
        change(y)
        del y
        _agree(plan(torch.tensor(X)), _expected(X))


def test_each_result_held_until_the_next_is_there_settles_on_two():
    plan = pb.compile(lambda x: np.tanh(x @ x), tier="stateful")
    x, addresses = torch.tensor(X), []
    for _ in range(8):
        x = plan(x)
        addresses.append(x.data_ptr())
    assert len(set(addresses[2:])) == 2


def test_threads_share_no_frame():
    plan, results, meeting = _plan(), {}, threading.Barrier(3, timeout=60)

    def run(scale):
        meeting.wait()
        results[scale] = [plan(torch.tensor(X * scale)).clone() for _ in range(20)]

    plan(torch.tensor(X))
    threads = [threading.Thread(target=run, args=(scale,)) for scale in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for scale in (1, 2, 3):
        expected = _expected(X * scale)
        for result in results[scale]:
            _agree(result, expected)


def test_streams_share_no_frame(monkeypatch):
    current = [1]
    monkeypatch.setattr(program, "stream_of", lambda device: lambda: current[0])
    plan, addresses = _plan(), {}
    for stream in (1, 2, 1, 2, 1, 2):
        current[0] = stream
        addresses.setdefault(stream, set()).add(plan(torch.tensor(X)).data_ptr())
    assert addresses[1].isdisjoint(addresses[2])


def test_a_run_that_raises_leaves_its_frame_for_the_next():
    plan = pb.compile(lambda x, i: np.sum(np.exp(x)[i]), tier="stateful")
    right = torch.tensor([1, 2])
    expected = np.sum(np.exp(X)[[1, 2]])
    _agree(plan(torch.tensor(X), right), expected)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        plan(torch.tensor(X), torch.tensor([1, 9]))
    _agree(plan(torch.tensor(X), right), expected)


def test_memory_that_was_made_where_pytorch_infers_is_written_elsewhere_too():
    plan, x = _plan(), torch.tensor(X)
    with torch.inference_mode():
        _agree(plan(x), _expected(X))
    _agree(plan(x), _expected(X))
    with torch.no_grad():
        _agree(plan(x.clone().requires_grad_()), _expected(X))
    _agree(plan(x.clone().requires_grad_()), _expected(X))


CONSTANT = np.arange(4.0)


@pytest.mark.parametrize("tier", ["fused", "stateful"])
def test_what_is_returned_shares_memory_with_nothing(tier):
    """Arguments, constants, one value twice, views, a stretched number: whoever writes into one result changes no other."""

    def function(x):
        made = np.arange(4.0)
        y = np.tanh(x)
        return x, made, made * 2, y, y, y[1:], np.broadcast_to(np.sum(x), (3,)), np.sum(x)

    plan = pb.compile(function, tier=tier)
    given = np.linspace(0, 1, 4)
    for _ in range(3):
        x = torch.tensor(given)
        results = plan(x)
        for number, (ours, theirs) in enumerate(zip(results, function(given), strict=True)):
            _agree(ours, theirs)
            ours.fill_(-1 - number)
        assert x.tolist() == given.tolist()


def test_numbers_and_arrays_around_the_function_are_those_of_the_call():
    plan = pb.compile(pb.grad(lambda x, rate: np.sum(np.exp(rate * x) * CONSTANT)), tier="stateful")
    x = np.linspace(0, 1, 4)
    try:
        for rate, scale in ((1.0, 1.0), (0.5, 3.0), (np.float64(2), 1.0)):
            CONSTANT[:] = np.arange(4.0) * scale
            _agree(plan(torch.tensor(x), rate), CONSTANT * rate * np.exp(rate * x))
    finally:
        CONSTANT[:] = np.arange(4.0)


def test_the_arena_holds_what_is_alive_at_once():
    def chain(x):
        for _ in range(6):
            x = np.tanh(x @ x)
        return np.sum(x)

    plan = pb.compile(chain, tier="stateful")
    x = RNG.normal(size=(8, 8)) / 8
    _agree(plan(torch.tensor(x)), chain(x))
    assert plan.summary()["state_bytes"] <= 2 * x.nbytes + 128 + 8
    assert "kept" in plan.explain()


def test_memory_that_two_values_have_at_once_is_found(monkeypatch):
    monkeypatch.setattr(PlacedBuffers, "add", lambda *_: 0)
    with pytest.raises(AssertionError), pb.debug.poisoning():
        _agree(_plan()(torch.tensor(X)), _expected(X))


def test_a_result_that_is_taken_from_its_holder_is_found(monkeypatch):
    monkeypatch.setattr(DeviceState, "_may_be_written", staticmethod(lambda *_: True))
    plan = _plan()
    plan(torch.tensor(X))
    held = plan(torch.tensor(X))
    plan(torch.tensor(2 * X))
    with pytest.raises(AssertionError):
        _agree(held, _expected(X))
