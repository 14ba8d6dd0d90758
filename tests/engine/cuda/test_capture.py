"""Plans of the tier `native` on a device: captured on the third call, launched by one call from then on.

On the late device, with our `libcuda`, which refuses in a capture what CUDA refuses; threads and forks in memory of the host.
"""

import gc
import os
import re
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from tests.engine.cuda.late import Lane, LateDevice  # noqa: E402

from pullback.backends.cuda import capture  # noqa: E402
from pullback.backends.cuda.branches import MOST_BRANCHES  # noqa: E402
from pullback.backends.cuda.state import DeviceState  # noqa: E402

X = np.random.default_rng(0).normal(size=(6, 6)) / 3


def _products(x):
    return np.sum(np.tanh(np.tanh(x @ x) @ x) ** 2)


def _nest(x):
    return np.sum(np.tanh(x) * x)


def _stored(x):
    y = np.exp(x)
    y[np.argsort(x[0])] = x
    return np.sum(y)


def _stored_in_a_loop(x):
    def step(c, row):
        y = np.exp(row)
        y[np.argsort(c)] = row
        return np.tanh(y), None

    return np.sum(pb.scan(step, x[0], x)[0])


def _agree(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


@pytest.fixture
def late():
    with LateDevice(by_driver=True) as device:
        yield device


def _plan(loss):
    return pb.compile(pb.grad(loss), tier="native")


def _warm(late, loss):
    """A plan that has been captured for an array, and the array."""
    plan, x = _plan(loss), late.put(X)
    for _ in range(3):
        plan(x)
    late.wait("the end of warming up")
    late.forget()
    late.library.calls.clear()
    assert plan.summary()["fallbacks"] == []
    return plan, x


def _wrong(late, plan, loss, scales=range(1, 8)):
    """True if one of several calls, whose results are all held and queued before any is awaited, gives something else than NumPy."""
    results = [plan(late.put(X * scale)) for scale in scales]
    return not all(
        np.allclose(late.take(ours), pb.grad(loss)(X * scale)) for ours, scale in zip(results, scales, strict=True)
    )


@pytest.mark.parametrize("loss", [_products, _nest])
def test_a_warm_call_is_one_launch(late, loss):
    plan, x = _warm(late, loss)
    result = plan(x)
    assert [name for name in late.library.calls if "Ctx" not in name] == ["cuGraphLaunch"]
    assert late.library.launched_on is None  # the legacy stream, which is current
    assert (late.waits, late.transfers, late.requests) == ({}, {}, {})
    assert plan.summary()["graph"] == {
        "nodes": len(late.queue),
        "branches": 2 if loss is _products else 0,
        "streams": 2 if loss is _products else 1,
        "sets": 1,
        "copies": 0,
        "moved": 0,
    }
    _agree(late.take(result), pb.grad(loss)(X))
    assert "calls launch a CUDA graph of" in plan.explain()


def test_kernels_are_told_where_arrays_lie(late):
    """No function of PyTorch works on the argument or the result: one graph serves all addresses, queued or not."""
    plan, _ = _warm(late, _nest)
    assert not _wrong(late, plan, _nest, range(1, 14))
    assert late.library.calls.count("cuGraphExecKernelNodeSetParams") >= 12
    assert "cuStreamBeginCapture_v2" not in late.library.calls
    assert plan.summary()["graph"]["sets"] == 1


@pytest.mark.parametrize(
    ("function", "expected", "copies"),
    [(pb.grad(_products), pb.grad(_products), 1), (lambda x: x @ x, lambda x: x @ x, 2)],
    ids=["what they read", "what they read and write"],
)
def test_products_have_a_graph_for_each_set_of_addresses_and_work_on_copies_from_the_eighth_on(
    late, function, expected, copies
):
    plan = pb.compile(function, tier="native")
    given = [late.put(X * scale) for scale in range(1, 14)]
    results = [plan(x) for x in given]
    assert plan.summary()["graph"]["sets"] == len(late.library.executables) == 8
    assert plan.summary()["graph"]["copies"] == copies
    for scale, (x, ours) in enumerate(zip(given, results, strict=True), 1):
        _agree(late.take(ours), expected(X * scale))
        _agree(late.now(x), X * scale)  # nobody wrote to it
    late.library.calls.clear()
    plan(given[3])
    assert "cuStreamBeginCapture_v2" not in late.library.calls


def test_each_result_that_is_the_next_argument_settles_on_two_addresses(late):
    plan, x, here = pb.compile(lambda x: np.tanh(x @ x), tier="native"), late.put(X), X
    for _ in range(9):
        x, here = plan(x), np.tanh(here @ here)
    _agree(late.take(x), here)
    assert plan.summary()["graph"]["sets"] <= 4


@pytest.mark.parametrize(
    "lying",
    [
        lambda late: late.put(np.repeat(X, 2, axis=1))[:, ::2],
        lambda late: late.put(X.T).t(),
        lambda late: late.put(np.concatenate([[9.0], X.ravel()]))[1:].view(6, 6),
    ],
    ids=["strided", "transposed", "unaligned"],
)
@pytest.mark.parametrize("loss", [_products, _nest])
def test_arrays_that_kernels_do_not_read_as_they_lie_are_copied_in(late, lying, loss):
    plan = _plan(loss)
    for _ in range(5):
        _agree(late.take(plan(lying(late))), pb.grad(loss)(X))
    assert plan.summary()["graph"]["copies"] == 1
    assert plan.summary()["graph"]["sets"] <= 2


AROUND = np.arange(6.0)


def test_numbers_and_arrays_of_the_host_are_those_of_the_call(late):
    plan = pb.compile(pb.grad(lambda x, rate: np.sum(np.exp(rate * x) * AROUND)), tier="native")
    x = late.put(X)
    for rate in (1.0, 0.5, 0.25, 2.0, 3.0):
        _agree(late.take(plan(x, rate)), rate * np.exp(rate * X) * AROUND)
    assert plan.summary()["graph"]["sets"] == 1


def test_results_that_share_memory_are_copied_apart(late):
    plan = pb.compile(lambda x: (np.tanh(x), np.tanh(x)[1:], x, np.broadcast_to(np.sum(x), (3,))), tier="native")
    for _ in range(4):
        results = [late.take(one) for one in plan(late.put(X))]
    for ours, theirs in zip(results, (np.tanh(X), np.tanh(X)[1:], X, np.full(3, np.sum(X))), strict=True):
        _agree(ours, theirs)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: np.sum(x**2) if np.sum(x) > -100 else np.sum(x), "looks at a value that is on the device"),
        (lambda x: np.sum(pb.scipy.special.gamma(x * x + 1)), "gamma runs on the host"),
        (_stored, "waiting is not permitted when stream is capturing (line"),
        (_stored_in_a_loop, "waiting is not permitted when stream is capturing (line"),
    ],
    ids=["guard", "host", "positions", "positions in a loop"],
)
def test_what_cannot_be_captured_runs_step_by_step_and_the_summary_says_why(late, function, said):
    plan = pb.compile(function, tier="native")
    for _ in range(4):
        value = plan(late.put(X))
    _agree(late.take(value), function(X))
    told = " ".join(plan.summary()["fallbacks"])
    assert "runs step by step, not as a CUDA graph" in told
    assert said in told
    assert said in plan.explain()
    lines, listing = (
        re.findall(r"\(line (\d+) of the program, `(.*)`\)", told),
        plan.explain().partition("# program\n")[2],
    )
    assert len(lines) == said.count("(line")
    assert all(text in listing.splitlines()[int(number) - 1] for number, text in lines)
    assert late.library.capturing == {}
    assert late.library.executables == {}


@pytest.mark.parametrize(
    "work",
    [
        lambda late: late.wait("a look"),
        lambda late: late.put(X).sum().item(),
        lambda late: late.put(X).copy_(torch.from_numpy(X)),
        lambda late: setattr(late, "stream", 0) or late.put(X).fill_(1),
    ],
    ids=["waiting", "a number", "the host's memory", "another stream"],
)
def test_the_late_device_refuses_in_a_capture_what_cuda_refuses(late, work):
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
        late.graphs.capture(lambda graph: None, lambda: work(late))
    assert late.library.capturing == {}
    assert late.library.contexts == [0]
    assert late.stream == 0


def test_graphs_end_with_their_plan(late):
    plan, _ = _warm(late, _products)
    assert late.library.graphs
    del plan
    gc.collect()
    assert (late.library.graphs, late.library.executables) == ({}, {})


def test_a_graph_that_fails_to_be_told_is_given_up_and_the_next_call_is_right(late):
    plan, x = _warm(late, _nest)
    late.library.failing["cuGraphExecKernelNodeSetParams"] = 1
    with pytest.raises(pb.errors.DeviceError, match="cuGraphExecKernelNodeSetParams failed"):
        plan(late.put(2 * X))
    late.library.failing.clear()
    _agree(late.take(plan(x)), pb.grad(_nest)(X))


@pytest.mark.parametrize("who", ["PyTorch", "the driver"])
def test_a_capture_that_the_device_has_no_memory_for_is_tried_again_after_more_and_more_runs(late, who, monkeypatch):
    """Others may free some meanwhile: the program is no worse off for good, in this thread or in others."""
    missing, tried = [True], []
    note = capture.Set.note

    def noting(*given):
        tried.append(len(runs))
        if who == "PyTorch" and missing[0]:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return note(*given)

    monkeypatch.setattr(capture.Set, "note", noting)
    late.library.failing |= {"cuGraphInstantiateWithFlags": 2} if who == "the driver" else {}
    plan, x, runs = _plan(_nest), late.put(X), []
    for _ in range(40):
        _agree(late.take(plan(x)), pb.grad(_nest)(X))
        runs.append(None)
    between = capture.RUNS_BETWEEN_CAPTURES
    assert sorted(set(tried)) == [2, 3 + between, 4 + 3 * between]
    (told,) = plan.summary()["fallbacks"]
    assert told.startswith(f"runs step by step until it is captured again, {4 * between} runs later: ")
    assert "out of memory" in told
    assert late.library.executables == late.library.graphs == late.library.capturing == {}
    missing[0] = late.library.failing.clear()
    for _ in range(4 * between + 1):
        plan(x)
    assert plan.summary()["fallbacks"] == []
    assert plan.summary()["graph"]["sets"] == len(late.library.executables) == 1
    _agree(late.take(plan(x)), pb.grad(_nest)(X))


def test_workspaces_of_products_are_in_the_pool_of_the_graph(late):
    plan, x = _warm(late, _products)
    late.clear_workspaces()  # as where another graph ends
    _agree(late.take(plan(x)), pb.grad(_products)(X))


def test_threads_have_graphs_of_their_own():
    plan, results, meeting = _plan(_products), {}, threading.Barrier(3, timeout=60)

    def run(scale):
        x = torch.tensor(X * scale)
        meeting.wait()
        results[scale] = [plan(x).clone() for _ in range(12)]

    threads = [threading.Thread(target=run, args=(scale,)) for scale in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for scale in (1, 2, 3):
        for result in results[scale]:
            _agree(result, pb.grad(_products)(X * scale))


def _capture_in_a_thread(late, *, keeps=None):
    """Capture a graph in a thread of its own, which ends; `keeps` is given it."""

    def capture_one():
        graph = late.graphs.capture(lambda graph: None, lambda: late.enqueue(lambda: None))
        if keeps is not None:
            keeps.append(graph)

    thread = threading.Thread(target=capture_one)
    thread.start()
    thread.join()


def _lanes(late):
    """The number of lanes that were made, each of which has a stream for each branch."""
    return len(late.library.streams) / MOST_BRANCHES


def test_threads_that_are_gone_leave_their_stream_to_the_next(late):
    for _ in range(5):
        _capture_in_a_thread(late)
        gc.collect()
    assert _lanes(late) == 1


def test_a_stream_is_not_left_to_others_while_a_graph_of_it_lives_or_to_one_that_launches_elsewhere(late):
    graphs = []
    for _ in range(2):
        _capture_in_a_thread(late, keeps=graphs)
    assert _lanes(late) == 2
    graphs.clear()
    gc.collect()
    late.stream = 5
    _capture_in_a_thread(late)
    assert _lanes(late) == 3
    late.stream = 0
    for _ in range(2):
        _capture_in_a_thread(late, keeps=graphs)
    assert _lanes(late) == 3


def test_the_pool_of_a_graph_is_of_the_device_of_its_plan(late, monkeypatch):
    current, made = [0], []

    @contextmanager
    def device(one):
        before, current[0] = current[0], one.index
        yield
        current[0] = before

    cuda = SimpleNamespace(
        ExternalStream=lambda stream, device: None, MemPool=lambda: made.append(current[0]), device=device
    )
    monkeypatch.setattr(torch, "cuda", cuda)
    capture.Lane(late.driver, late.context, torch.device("cuda", 1))
    assert (made, current) == ([1], [0])


def test_a_graph_of_the_parent_is_refused_in_a_child():
    plan, x = _plan(_nest), torch.tensor(X)
    for _ in range(3):
        plan(x)
    child = os.fork()
    if not child:
        try:
            plan(x)
        except pb.errors.DeviceError as error:
            os._exit(0 if "forked" in str(error) and "spawn" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    _agree(plan(x), pb.grad(_nest)(X))


# --- planted faults -----------------------------------------------------------------------------------------------------
def test_memory_that_is_asked_for_outside_of_the_pool_is_found(late, monkeypatch):
    entered = Lane.entered

    def poolless(lane):
        lane.pool = None
        return entered(lane)

    monkeypatch.setattr(Lane, "entered", poolless)
    plan = _plan(_products)
    for _ in range(3):
        plan(late.put(X))
    assert "asking for memory outside of the pool is not permitted" in plan.summary()["fallbacks"][0]


def test_a_wait_is_found(late, monkeypatch):
    note = capture.Set.note
    monkeypatch.setattr(capture.Set, "note", lambda *given: (late.wait("hidden"), note(*given)))
    plan = _plan(_nest)
    for _ in range(3):
        plan(late.put(X))
    assert "waiting is not permitted when stream is capturing" in plan.summary()["fallbacks"][0]


def test_a_stale_pointer_is_found(late, monkeypatch):
    plan, _ = _warm(late, _nest)
    monkeypatch.setattr(capture.Set, "move", lambda *_: 0)
    assert _wrong(late, plan, _nest)


def test_an_address_that_products_read_and_nobody_compares_is_found(late, monkeypatch):
    plan, _ = _warm(late, _products)
    monkeypatch.setattr(
        capture.ReplayedProgram, "_fitting", lambda self, sets, pieces: sets.sets[0] if sets.sets else None
    )
    assert _wrong(late, plan, _products)


def test_a_result_that_is_taken_from_its_holder_is_found(late, monkeypatch):
    monkeypatch.setattr(DeviceState, "_may_be_written", staticmethod(lambda *_: True))
    assert _wrong(late, _plan(_products), _products)


def test_a_workspace_outside_of_the_arena_is_found(late, monkeypatch):
    """The stream that products ran on before has one already, of everybody's memory."""
    late.stream = 5

    class OnTheCallersStream(Lane):
        def __init__(self, device):
            super().__init__(device)
            self.stream = device.stream

    monkeypatch.setattr(late.graphs, "_lane", lambda: OnTheCallersStream(late))
    plan, x = _warm(late, _products)
    late.clear_workspaces()
    with pytest.raises(AssertionError):
        _agree(late.take(plan(x)), pb.grad(_products)(X))


def test_a_capture_on_the_legacy_stream_is_refused(late, monkeypatch):
    monkeypatch.setattr(Lane, "stream", property(lambda lane: 0, lambda lane, stream: None), raising=False)
    plan = _plan(_nest)
    for _ in range(3):
        plan(late.put(X))
    assert "cuStreamBeginCapture_v2 failed with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" in plan.summary()["fallbacks"][0]
