"""Calls of captured plans that go from the native entry to `cuGraphLaunch`, on the late device with our `libcuda`."""

import os
import sys
import threading
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from tests.engine.cuda.late import LateDevice  # noqa: E402

from pullback.backends.cuda import entrance, program  # noqa: E402
from pullback.backends.native.entry import NotNativeError, bound_frames  # noqa: E402
from pullback.backends.suspension import suspended  # noqa: E402
from pullback.devices.cuda.eager import adopted  # noqa: E402

X = np.random.default_rng(0).normal(size=(6, 6)) / 3
ENGINE = str(Path(pb.__file__).parent)
LAUNCH = ["cuCtxGetCurrent", "cuGraphLaunch"]


def _products(x):
    return np.sum(np.tanh(np.tanh(x @ x) @ x) ** 2)


def _nest(x):
    return np.sum(np.tanh(x) * x)


@pytest.fixture
def late():
    with LateDevice(by_driver=True) as device:
        device.library.contexts.append(device.context)  # as PyTorch leaves it
        yield device


def _put(late, value):
    return adopted(late.put(value))


def _entered(late, loss):
    """A plan whose calls with an array are native, and the array."""
    plan, x = pb.compile(pb.grad(loss), tier="native"), _put(late, X)
    for _ in range(4):
        plan(x)
    late.wait("the end of warming up")
    late.library.calls.clear()
    late.forget()
    return plan, x


def _agree(late, ours, theirs):
    np.testing.assert_allclose(late.take(ours.tensor), theirs, rtol=1e-11, atol=1e-12)


def _calls_before_launch(late, call):
    """The functions of the engine in Python that run until a graph is launched, and after it."""
    seen = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith((ENGINE, "<pullback")):
            seen.append((frame.f_code.co_name, "cuGraphLaunch" in late.library.calls))

    late.library.calls.clear()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    assert late.library.calls.count("cuGraphLaunch") == 1
    return [name for name, is_after in seen if not is_after], [name for name, is_after in seen if is_after]


@pytest.mark.parametrize("loss", [_products, _nest])
def test_no_python_runs_between_the_caller_and_the_launch(late, loss):
    plan, x = _entered(late, loss)
    with suspended():
        before, _ = _calls_before_launch(late, lambda: plan(x))
    assert len(before) > 100
    before, after = _calls_before_launch(late, lambda: plan(x))
    assert before == []
    assert len(after) < 10
    assert late.library.calls == LAUNCH
    assert (late.waits, late.transfers, late.requests) == ({}, {}, {})
    result = plan(x)
    _agree(late, result, pb.grad(loss)(X))
    assert "native: no Python between the caller and the launch" in plan.explain()


def test_why_calls_that_launch_a_graph_are_not_native_is_told(late, monkeypatch):
    def refuse(*_):
        raise NotNativeError("an argument was stored into")

    monkeypatch.setattr("pullback.compiling.plan.template_of_graph", refuse)
    plan, _ = _entered(late, _nest)
    assert "calls like it go through Python: an argument was stored into" in plan.explain()


def test_arguments_in_containers_and_results_of_every_form(late):
    def loss(layers, x):
        for layer in layers:
            x = np.tanh(layer["w"] @ x + layer["b"])
        return np.sum(x * x)

    rng = np.random.default_rng(1)
    here = [{"w": rng.normal(size=(6, 6)), "b": rng.normal(size=(6, 1))} for _ in range(2)]
    there = [{name: _put(late, value) for name, value in layer.items()} for layer in here]
    plan, x = pb.compile(pb.value_and_grad(loss), tier="native"), _put(late, X)
    for _ in range(4):
        plan(there, x)
    before, _ = _calls_before_launch(late, lambda: plan(there, x))
    assert before == []
    value, slopes = plan(there, x)
    expected, expected_slopes = pb.value_and_grad(loss)(here, X)
    _agree(late, value, expected)
    for ours, theirs in zip(slopes, expected_slopes, strict=True):
        for name in theirs:
            _agree(late, ours[name], theirs[name])


def _held_by_capsule(result):
    return torch.utils.dlpack.to_dlpack(result.tensor)


HOLDING = {
    "name": lambda result: result,
    "tensor": lambda result: result.tensor,
    "view": lambda result: result.tensor[1:],
    "storage": lambda result: result.tensor.untyped_storage(),
    "capsule": _held_by_capsule,
    "NumPy": lambda result: result.tensor.numpy(),
    "weakly, by another": lambda result: (weakref.ref(result.tensor), result.tensor),
}


@pytest.mark.parametrize("holding", HOLDING.values(), ids=HOLDING)
def test_a_result_that_is_held_is_not_written_to(late, holding):
    plan, x = _entered(late, _products)
    first = plan(x)
    address, kept = first.tensor.data_ptr(), holding(first)
    del first
    late.library.calls.clear()
    addresses = {plan(x).tensor.data_ptr() for _ in range(4)}
    assert address not in addresses
    assert late.library.calls.count("cuGraphLaunch") == 4
    del kept
    _agree(late, plan(x), pb.grad(_products)(X))


def test_a_result_that_nobody_has_any_more_is_written_again_natively(late):
    plan, x = _entered(late, _products)
    held = plan(x)
    plan(x)
    del held
    for _ in range(3):
        plan(x)
    before, _ = _calls_before_launch(late, lambda: plan(x))
    assert before == []


@pytest.mark.parametrize(
    "change",
    [
        lambda result: result.tensor.requires_grad_(),
        lambda result: result.tensor.t_(),
        lambda result: result.tensor.resize_(2, 3),
        lambda result: result.tensor.set_(torch.zeros(6, 6, dtype=torch.float64)),
    ],
    ids=["gradients", "transposed", "resized", "elsewhere"],
)
def test_a_result_that_was_changed_in_kind_is_not_given_again(late, change):
    plan, x = _entered(late, _nest)
    change(plan(x))
    result = plan(x)
    assert (tuple(result.tensor.shape), result.tensor.is_contiguous(), result.tensor.requires_grad) == (
        (6, 6),
        True,
        False,
    )
    _agree(late, result, pb.grad(_nest)(X))


OTHERS = {
    "elsewhere": lambda late: late.put(2 * X),
    "transposed": lambda late: late.put(X.T.copy()).t(),
    "of another shape": lambda late: late.put(X[:3, :3]),
    "of another dtype": lambda late: late.put(X.astype(np.float32)),
    "strided": lambda late: late.put(np.repeat(X, 2, axis=1))[:, ::2],
}


@pytest.mark.parametrize("loss", [_products, _nest])
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_does_not_fit_goes_through_python_and_back(late, other, loss):
    plan, x = _entered(late, loss)
    tensor = other(late)
    here = late.take(tensor)
    rtol = 1e-5 if here.dtype == np.float32 else 1e-11
    for _ in range(2):
        np.testing.assert_allclose(late.take(plan(adopted(tensor)).tensor), pb.grad(loss)(here), rtol=rtol, atol=rtol)
        _agree(late, plan(x), pb.grad(loss)(X))
    for _ in range(3):
        plan(x)
    before, _ = _calls_before_launch(late, lambda: plan(x))
    assert before == []


def test_a_tensor_whose_memory_was_exchanged_is_read_where_it_lies(late):
    plan, x = _entered(late, _nest)
    x.tensor.data = late.put(3 * X)
    _agree(late, plan(x), pb.grad(_nest)(3 * X))


def test_arrays_that_were_stored_into_and_tensors_go_through_python(late):
    plan, x = _entered(late, _nest)
    np.testing.assert_allclose(late.take(plan(x.tensor)), pb.grad(_nest)(X), rtol=1e-11)
    _agree(late, plan(x), pb.grad(_nest)(X))


def test_what_is_around_the_function_is_looked_at(late):
    around = {"scale": 2.0}
    plan, x = pb.compile(pb.grad(lambda x: around["scale"] * _nest(x)), tier="native"), _put(late, X)
    for scale in (2.0, 3.0, 3.0, 3.0, 4.0):
        around["scale"] = scale
        _agree(late, plan(x), scale * pb.grad(_nest)(X))


def test_another_precision_is_another_graph(late):
    plan, x = _entered(late, _products)
    with pb.precision("tf32"):
        for _ in range(4):
            plan(x)
        assert len(late.library.executables) == 2
        (frame, *_) = bound_frames(plan)
        launched = frame.address
    before, _ = _calls_before_launch(late, lambda: plan(x))
    assert plan._native_latest not in (0, launched)
    assert before == []


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (700, "ILLEGAL_ADDRESS .*; this process cannot use the device any more: start another"),
        (3, "cuGraphLaunch failed with error 3 .*; a process that was forked .* method spawn"),
        (2, "CUDA_ERROR_OUT_OF_MEMORY .*; free arrays, or use a smaller size"),
    ],
)
def test_an_error_of_the_launch_is_the_same_sentence(late, code, sentence):
    plan, x = _entered(late, _nest)
    late.library.failing["cuGraphLaunch"] = code
    with pytest.raises(pb.errors.DeviceError, match=sentence) as raised:
        plan(x)
    assert "\n" not in str(raised.value)
    assert late.library.calls.count("cuGraphLaunch") == 2  # the entry's, and the one that says why
    late.library.failing.clear()
    for _ in range(3):
        _agree(late, plan(x), pb.grad(_nest)(X))


def test_where_another_context_is_current_python_makes_ours_so(late):
    plan, x = _entered(late, _nest)
    late.library.contexts.append(0xC99)
    _agree(late, plan(x), pb.grad(_nest)(X))
    assert late.library.calls.count("cuCtxPushCurrent_v2") == 1
    assert late.library.contexts[-1] == 0xC99


def test_a_stream_has_memory_and_a_graph_of_its_own(late, monkeypatch):
    monkeypatch.setattr(program, "stream_of", lambda device: partial(getattr, late, "stream"))
    plan, x = _entered(late, _products)
    on_legacy = plan(x).tensor.data_ptr()
    late.stream = 5
    for _ in range(4):
        result = plan(x)
        assert result.tensor.data_ptr() != on_legacy
        del result
    before, _ = _calls_before_launch(late, lambda: plan(x))
    assert (before, late.library.launched_on) == ([], 5)
    late.stream = 0
    assert plan(x).tensor.data_ptr() == on_legacy
    assert late.library.launched_on is None


def test_a_stream_that_somebody_captures_is_not_given_a_graph(late, monkeypatch):
    plan, x = _entered(late, _nest)
    is_captured = [True]
    monkeypatch.setattr(late.graphs, "_is_capturing", lambda: is_captured[0])
    plan, x = pb.compile(pb.grad(_nest), tier="native"), _put(late, X)
    is_captured[0] = False
    for _ in range(4):
        plan(x)
    late.library.calls.clear()
    is_captured[0] = True
    plan(x)
    assert "cuGraphLaunch" not in late.library.calls
    assert "cuLaunchKernel" in late.library.calls


def test_threads_have_frames_of_their_own(late):
    plan, x = _entered(late, _nest)
    results, addresses = [], []

    def run():
        for _ in range(5):
            result = plan(x)
            addresses.append(result.tensor.data_ptr())
            del result
        results.append(plan(x))

    ours = plan(x)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert ours.tensor.data_ptr() not in addresses
    late.wait("the end")
    for result in (ours, *results):
        np.testing.assert_allclose(
            result.tensor.numpy() if result is not ours else late.take(ours.tensor), pb.grad(_nest)(X)
        )
    assert len(late.library.executables) == 2


def test_frames_of_threads_that_ended_go_with_their_memory(late):
    plan, _ = _entered(late, _nest)
    given = [_put(late, k * X) for k in range(1, 4)]  # all there at once: none lies where another one did

    def run(x):
        for _ in range(4):
            plan(x)

    for x in given:
        thread = threading.Thread(target=run, args=(x,))
        thread.start()
        thread.join(60)
        late.wait("what the thread queued, while its memory is there")
    assert len(bound_frames(plan)) == 2  # that of this thread, and that of the last one


def test_a_child_of_a_fork_is_refused(late):
    plan, x = _entered(late, _nest)
    child = os.fork()
    if not child:
        try:
            plan(x)
        except pb.errors.DeviceError as error:
            os._exit(0 if "forked" in str(error) and "spawn" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    _agree(late, plan(x), pb.grad(_nest)(X))


def test_a_call_inside_of_an_answer_that_moves_the_graph_is_noticed(late, monkeypatch):
    """As where garbage is collected while the entry asks, and what is let go of calls the plan."""
    calls = []

    def asked():
        for call in [calls.pop()] if calls else ():
            call()
        return False

    monkeypatch.setattr(late.graphs, "_is_capturing", asked)
    plan, x = _entered(late, _nest)
    other = _put(late, 5 * X)
    calls.append(lambda: plan(other))
    _agree(late, plan(x), pb.grad(_nest)(X))
    assert late.library.calls.count("cuGraphLaunch") == 2


def test_a_result_that_a_call_inside_of_an_answer_keeps_is_not_written_to(late, monkeypatch):
    """In the last answer of all: that nobody has the result was asked before."""
    count, calls, kept = entrance.memory_count, [], []

    def counted(storage):
        found = count(storage)
        for call in [calls.pop()] if calls else ():
            call()
        return found

    monkeypatch.setattr(entrance, "memory_count", counted)
    plan, x = _entered(late, _nest)
    calls.append(lambda: kept.append(plan(x)))
    ours = plan(x)
    assert len(kept) == 1
    assert ours.tensor.data_ptr() != kept[0].tensor.data_ptr()
    _agree(late, ours, pb.grad(_nest)(X))


def test_a_call_inside_of_one_whose_results_have_not_been_taken_has_its_own(late):
    """As where garbage is collected, or a signal is handled, when the function begins that takes the results."""
    plan, x = _entered(late, _nest)
    other, kept = _put(late, 5 * X), []

    def interrupt(frame, event, _):
        if event == "call" and frame.f_code.co_qualname.startswith("Entrance.result.") and not kept:
            kept.append(plan(other))

    sys.setprofile(interrupt)
    try:
        ours = plan(x)
    finally:
        sys.setprofile(None)
    _agree(late, kept[0], pb.grad(_nest)(5 * X))
    _agree(late, ours, pb.grad(_nest)(X))


def test_a_frame_that_calls_of_another_kind_let_go_is_made_again(late):
    plan, x = _entered(late, _nest)
    small = _put(late, X[:3, :3])
    plan(_put(late, 2 * X))  # elsewhere: calls with x go through Python until they lie still
    for _ in range(4):
        plan(small)
    for _ in range(3):
        plan(x)
    before, _ = _calls_before_launch(late, lambda: plan(x))
    assert before == []


def test_graphs_and_memory_end_with_their_plan(late):
    plan, x = _entered(late, _products)
    result = weakref.ref(plan(x).tensor)
    del plan
    assert result() is None  # at once: nothing goes round in a circle
    assert (late.library.graphs, late.library.executables) == ({}, {})


def test_plans_that_have_something_to_do_on_the_host_go_through_python(late):
    plan, x = pb.compile(pb.grad(lambda x, rate: rate * _nest(x)), tier="native"), _put(late, X)
    for rate in (1.0, 2.0, 3.0, 4.0, 5.0):
        _agree(late, plan(x, rate), rate * pb.grad(_nest)(X))
    assert bound_frames(plan) == ()


# --- planted faults -----------------------------------------------------------------------------------------------------
def test_an_argument_that_is_not_asked_where_it_lies_is_found(late, monkeypatch):
    monkeypatch.setattr(entrance, "_where", lambda tensor: [])
    plan, _ = _entered(late, _nest)
    with pytest.raises(AssertionError, match="Not equal"):
        _agree(late, plan(_put(late, 2 * X)), pb.grad(_nest)(2 * X))


def test_a_result_whose_holder_is_not_asked_for_is_found(late, monkeypatch):
    monkeypatch.setattr(entrance, "_whether_alone", lambda tensor: [])
    plan, x = _entered(late, _products)
    held = plan(x)
    assert plan(x).tensor.data_ptr() == held.tensor.data_ptr()
