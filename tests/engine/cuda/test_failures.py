"""Errors of a device, of memory that it does not have and of kernels: one sentence, and the next call works."""

import itertools
import re
import weakref

import numpy as np
import pytest
from tests.engine.cuda.libcuda import Library

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from pullback.backends.cuda import program, state  # noqa: E402 - loads PyTorch
from pullback.backends.cuda.driver import Driver  # noqa: E402
from pullback.backends.cuda.kernel_launch import KernelLoader  # noqa: E402

X = np.random.default_rng(0).normal(size=(6, 6)) / 3
TIERS = ["unfused", "fused", "stateful", "native"]

#: PyTorch's own words.
NO_MEMORY = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 8.12 MiB is free. "
    "Process 12345 has 70.89 GiB memory in use. Including non-PyTorch memory, this process has 8.20 GiB memory in use. Of the "
    "allocated memory 7.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated. If reserved but "
    "unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
ASYNCHRONOUS = (
    "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported at some other "
    "API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
)
TOLD = (
    r"CUDA out of memory, tried to allocate 2.00 GiB, GPU 0 has a total capacity of 79.11 GiB of which 8.12 MiB is free, "
    r"Process 12345 has 70.89 GiB memory in use, .*; free arrays, or use a smaller size$"
)
UNUSABLE = "; this process cannot use the device any more: start another"


def _loss(x):
    return np.sum(np.tanh(np.tanh(x @ x) @ x) ** 2)


def _raising(error):
    def raise_it(*args, **keywords):
        raise error

    return raise_it


def _gradient(tier):
    return pb.grad(_loss) if tier == "unfused" else pb.compile(pb.grad(_loss), tier=tier)


def _one_sentence(raised):
    assert "\n" not in str(raised.value)
    assert "PYTORCH_ALLOC_CONF" not in str(raised.value)


@pytest.mark.parametrize("tier", TIERS)
def test_memory_that_is_not_there_is_told_and_the_next_call_works(tier, monkeypatch):
    gradient, x = _gradient(tier), torch.tensor(X)
    if tier != "native":  # where calls behind the first ask for none
        gradient(x)
    where = "matmul: " if tier == "unfused" else r"line \d+ of the program, `.*matmul\d+\(.*\)`: "
    with monkeypatch.context() as patch:
        for name in ("matmul", "mm"):
            patch.setattr(torch, name, _raising(torch.OutOfMemoryError(NO_MEMORY)))
        with pytest.raises(pb.errors.DeviceError, match=f"^{where}{TOLD}") as raised:
            gradient(x)
        assert ("; the plan needs " in str(raised.value)) is (tier != "unfused")
        _one_sentence(raised)
    for _ in range(5):
        np.testing.assert_allclose(gradient(x), pb.grad(_loss)(X), rtol=1e-11)


@pytest.mark.parametrize("tier", ["stateful", "native"])
def test_a_frame_that_there_is_no_memory_for_is_told_and_the_next_call_works(tier, monkeypatch):
    gradient, x = _gradient(tier), torch.tensor(X)
    gradient(x)
    held = [gradient(x)]  # the next call needs another result
    with monkeypatch.context() as patch:
        patch.setattr(state.DeviceState, "_empty", _raising(torch.OutOfMemoryError(NO_MEMORY)))
        with pytest.raises(pb.errors.DeviceError, match=f"^memory for a plan: {TOLD}") as raised:
            gradient(x)
        _one_sentence(raised)
    for _ in range(5):
        np.testing.assert_allclose(gradient(x), pb.grad(_loss)(X), rtol=1e-11)
    np.testing.assert_allclose(held[0], pb.grad(_loss)(X), rtol=1e-11)


def test_what_a_failed_call_made_is_let_go_while_its_error_is_held(monkeypatch):
    """Or there would be no memory for the next call either."""
    made, multiply = [], torch.matmul

    def second(a, b):
        if made:
            raise torch.OutOfMemoryError(NO_MEMORY)
        made.append(multiply(a, b))
        return made[0]

    plan, x = pb.compile(lambda x: (x @ x) @ x, tier="fused"), torch.tensor(X)
    plan(x)
    monkeypatch.setattr(torch, "matmul", second)
    try:
        plan(x)
    except pb.errors.DeviceError as error:
        held = error
    reference = weakref.ref(made.pop())
    assert reference() is None
    assert held.__cause__ is not None


def _looping(x):
    c, _ = pb.scan(lambda c, row: (np.tanh(c @ x) + row, None), x @ x, x)
    return c @ x


@pytest.mark.parametrize("failing", [0, 2, 7], ids=["before the loop", "in the loop", "after the loop"])
@pytest.mark.parametrize("tier", TIERS[1:])
def test_the_line_of_an_error_is_that_line_of_the_page_of_the_plan(tier, failing, monkeypatch):
    plan, x, products = pb.compile(_looping, tier=tier), torch.tensor(X), itertools.count()
    plan(x)

    def product(multiply):
        return lambda *args, **keywords: (
            _raising(torch.OutOfMemoryError(NO_MEMORY)) if next(products) == failing else multiply
        )(*args, **keywords)

    for name in ("matmul", "mm"):
        monkeypatch.setattr(torch, name, product(getattr(torch, name)))
    with pytest.raises(pb.errors.DeviceError) as raised:
        plan(x)
    number, text = re.match(r"line (\d+) of the program, `(.*matmul\d+\(.*\))`: ", str(raised.value)).groups()
    listing = plan.explain().partition("# program\n")[2].splitlines()
    assert text in listing[int(number) - 1]


def test_arrays_that_do_not_fit_are_told_where_they_are_put(monkeypatch):
    monkeypatch.setattr("pullback.devices.cuda.eager.tensor_of", _raising(torch.OutOfMemoryError(NO_MEMORY)))
    with pytest.raises(pb.errors.DeviceError, match=f"^an array of 288 bytes: {TOLD}"):
        pb.put(X, "cpu")


def test_an_asynchronous_error_is_not_blamed_on_who_notices_it(monkeypatch):
    (x,) = pb.put((X,), "cpu")
    said = (
        r"an illegal memory access was encountered, an asynchronous error of a kernel that was queued before" + UNUSABLE
    )
    monkeypatch.setattr(torch.Tensor, "cpu", _raising(RuntimeError(ASYNCHRONOUS)))
    with pytest.raises(
        pb.errors.DeviceError, match=rf"^fetching <array float64\[6, 6\] on cpu>: CUDA error: {said}"
    ) as raised:
        pb.fetch(x)
    _one_sentence(raised)
    monkeypatch.setattr(torch, "matmul", _raising(RuntimeError(ASYNCHRONOUS)))
    with pytest.raises(pb.errors.DeviceError, match=f"^matmul: CUDA error: {said}"):
        np.matmul(x, x)


def test_an_asynchronous_error_beside_the_lines_of_a_plan_is_not_told_as_one_of_memory(monkeypatch):
    plan, x = pb.compile(pb.grad(_loss), tier="stateful"), torch.tensor(X)
    monkeypatch.setattr(state.DeviceState, "_empty", _raising(RuntimeError(ASYNCHRONOUS)))
    with pytest.raises(pb.errors.DeviceError, match=r"^CUDA error: an illegal memory access was encountered, "):
        plan(x)


@pytest.mark.parametrize("blocking", [False, True])
def test_an_error_of_a_launch_names_its_line_and_blames_it_only_where_launches_are_waited_for(monkeypatch, blocking):
    library = Library()
    monkeypatch.setattr(program, "loader_for", lambda device: KernelLoader(Driver(library), 0, "sm_90", lambda: 0))
    if blocking:
        monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    plan, x = pb.compile(lambda x: np.sum(np.tanh(x) * x), tier="native"), torch.tensor(X)
    plan(x)
    library.failing["cuLaunchKernel"] = 700
    before = "" if blocking else ", an asynchronous error of a kernel that was queued before"
    said = rf"^line \d+ of the program, `nest\d+\(.*\)`: cuLaunchKernel failed with CUDA_ERROR_ILLEGAL_ADDRESS .*\){before}{UNUSABLE}"
    with pytest.raises(pb.errors.DeviceError, match=said):
        plan(x)
    fallbacks = plan.summary()["fallbacks"]
    assert bool(fallbacks) is blocking
    if blocking:
        assert "CUDA_LAUNCH_BLOCKING is 1, so that each kernel is waited for" in fallbacks[0]
    library.failing["cuFuncGetAttribute"] = 700  # as everything that the driver is asked from then on
    assert ", 40 registers, 0 bytes of stack" in plan.explain()


def test_other_errors_stay_what_they_are(monkeypatch):
    plan = pb.compile(lambda x, k: np.sum(x[k]), tier="stateful")
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        plan(torch.tensor(X), torch.tensor([9]))
    monkeypatch.setattr(torch, "matmul", _raising(RuntimeError("something else")))
    with pytest.raises(RuntimeError, match="^something else$"):
        pb.grad(_loss)(torch.tensor(X))
