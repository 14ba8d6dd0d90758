"""`pb.device`, `pb.put` and `pb.fetch`: arrays get to a device and back, and what cannot is refused in one sentence."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")
FakeTensorMode = pytest.importorskip("torch._subclasses.fake_tensor").FakeTensorMode

from pullback.devices.cuda import values  # noqa: E402 - loads PyTorch
from pullback.devices.cuda.eager import adopted, device_named  # noqa: E402


def _loss(w, x):
    return np.sum(np.tanh(w @ x) ** 2)


W, X = np.linspace(-1, 1, 12).reshape(3, 4), np.linspace(0, 1, 4)
GRADIENT = pb.value_and_grad(_loss, wrt=("w", "x"))


def _agree(there, here):
    np.testing.assert_allclose(np.asarray(there), np.asarray(here), rtol=1e-12)


@pytest.mark.parametrize("tier", ["unfused", "fused", "stateful", "native"])
def test_gradients_are_of_the_kind_that_went_in(tier):
    value, gradients = GRADIENT(W, X)
    with pb.tier(tier):
        of_torch = GRADIENT(torch.tensor(W), torch.tensor(X))
        of_put = GRADIENT(*pb.put((W, X), "cpu"))
        with pb.device("cpu"):
            of_numpy = GRADIENT(W, X)
    assert type(of_torch[0]) is type(of_torch[1][0]) is torch.Tensor
    assert type(of_numpy[0]) is np.float64
    assert type(of_numpy[1][0]) is np.ndarray
    assert of_put[0].on_device
    assert of_put[1][0].device == "cpu"
    for result in (of_torch, pb.fetch(of_put), of_numpy):
        _agree(result[0], value)
        for ours, theirs in zip(result[1], gradients, strict=True):
            _agree(ours, theirs)


def test_every_transformation_takes_device_arrays():
    w, x = pb.put((W, X), "cpu")
    cube = lambda x: np.sum(x**3)  # noqa: E731 - one line each
    _agree(pb.fetch(pb.hessian(cube)(x)), pb.hessian(cube)(X))
    _agree(pb.fetch(pb.hvp(cube, x, x)), pb.hvp(cube, X, X))
    _agree(pb.fetch(pb.jacobian(np.sin)(x)), pb.jacobian(np.sin)(X))
    _agree(pb.fetch(pb.jacobian(np.sin, mode="forward")(x)), pb.jacobian(np.sin)(X))
    _agree(pb.fetch(pb.vmap(pb.grad(cube))(w)), pb.vmap(pb.grad(cube))(W))
    step = lambda c, a: (c * a + np.sin(a), c)  # noqa: E731
    _agree(pb.fetch(pb.grad(lambda x: pb.scan(step, 1.0, x)[0])(x)), pb.grad(lambda x: pb.scan(step, 1.0, x)[0])(X))
    _agree(pb.fetch(pb.grad(lambda x: np.sum(x[x > 0.5] ** 2))(x)), [0, 0, 4 / 3, 2])
    y, push = pb.linearize(np.square, x)
    _agree(pb.fetch(push(x)), 2 * X * X)
    _agree(pb.fetch(y), X * X)


def test_vjp_jvp_and_linearize_take_tensors():
    x = torch.tensor(X)
    y, pullback = pb.vjp(np.square, x)
    _agree(y, X * X)
    _agree(pullback(torch.ones(4, dtype=torch.float64))[0], 2 * X)
    _agree(pb.jvp(np.square, (x,), (x,))[1], 2 * X * X)
    y, push = pb.linearize(np.square, x)
    _agree(push(x), 2 * X * X)


class _OfCupy:
    """An array that knows of CuPy's protocols the one that is asked for."""

    def __init__(self, array):
        self.array, self.shape, self.device = array, array.shape, "a device of CuPy's"

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("tier", ["unfused", "fused", "stateful", "native"])
def test_arrays_of_cupy_are_taken_as_they_lie_and_come_back_as_its_own(tier, monkeypatch):
    cupy = ModuleType("cupy")
    cupy.from_dlpack = lambda there: _OfCupy(np.from_dlpack(there))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(_OfCupy, "__module__", "cupy")
    with pb.tier(tier):
        for _ in range(4):
            value, gradients = GRADIENT(_OfCupy(W), _OfCupy(X))
    assert {type(one) for one in (value, *gradients)} == {_OfCupy}
    expected = GRADIENT(W, X)
    _agree(value.array, expected[0])
    for ours, theirs in zip(gradients, expected[1], strict=True):
        _agree(ours.array, theirs)
    with pytest.raises(pb.errors.DeviceError, match="w is of cupy, x is of torch: arrays of one call lie in one place"):
        GRADIENT(_OfCupy(W), torch.tensor(X))
    x = _OfCupy(X.copy())
    address = pb.put(x, "cpu").tensor.data_ptr()
    assert address == x.array.ctypes.data


def test_python_numbers_and_unused_arguments_get_gradients_like_themselves():
    dx, da, dy = pb.grad(lambda x, a, y: np.sum(x * a), wrt=(0, 1, 2))(torch.ones(3), 2.0, torch.ones(2))
    assert (type(da), da) == (float, 3.0)
    assert dx.tolist() == [2, 2, 2]
    assert dy.tolist() == [0, 0]


def test_has_aux_gives_tensors_and_what_else_was_returned():
    (value, aux), gradient = pb.value_and_grad(lambda x: (np.sum(x * x), {"y": x + 1, "n": 3}), has_aux=True)(
        torch.ones(3)
    )
    assert (float(value), aux["y"].tolist(), aux["n"], gradient.tolist()) == (3, [2, 2, 2], 3, [2, 2, 2])


def test_a_block_moves_as_one_array_and_its_views_stay_views():
    block = pb.Block({"w": (3, 4), "b": (3,)}, np.float32, init={"w": np.ones})
    there = pb.put(block, "cpu")
    assert type(there) is pb.Block
    assert there.w.tensor.data_ptr() == there.array.tensor.data_ptr()
    loss = lambda p: np.sum(np.tanh(p.w @ X.astype(np.float32) + p.b) ** 2)  # noqa: E731
    gradient = pb.fetch(pb.grad(loss)(there))
    assert type(gradient) is pb.Block
    np.testing.assert_allclose(gradient.array, pb.grad(loss)(block).array, rtol=1e-5)


def test_results_share_memory_with_nothing_of_the_callers():
    x = torch.ones(3)
    a_bar, b_bar = pb.grad(lambda a, b: np.sum(a + b), wrt=(0, 1))(x, torch.ones(3))
    a_bar += 1
    assert b_bar.tolist() == [1, 1, 1]
    value, _ = pb.vjp(lambda x: x, x)
    value += 1
    assert x.tolist() == [1, 1, 1]
    (_, same), _ = pb.value_and_grad(lambda x: (np.sum(x), x), has_aux=True)(x)
    same += 1
    assert x.tolist() == [1, 1, 1]


def test_a_tensor_changed_between_function_and_pullback_is_noticed():
    x = torch.ones(3)
    _, pullback = pb.vjp(lambda x: x * x, x)
    x.add_(1)
    with pytest.raises(pb.errors.ChangedError, match="changed after the function ran"):
        pullback(torch.ones(3))


def test_stores_into_arrays_of_the_function_and_not_into_the_callers():
    def loss(x, c):
        y = c * 2
        y[0] = 5
        return np.sum(y * x)

    _agree(pb.fetch(pb.grad(loss)(*pb.put((X, X), "cpu"))), pb.grad(loss)(X, X))

    def storing(x, c):
        c[0] = 5
        return np.sum(c * x)

    with pytest.raises(pb.errors.TracingError, match="a store into an argument"):
        pb.grad(storing)(*pb.put((X, X), "cpu"))


C = np.linspace(-2, 2, 12).reshape(3, 4)
C[0, 0], C[1, 1] = -0.0, np.nan
INPLACE = {
    "matmul": lambda c, a, b: np.sum(pb.inplace.matmul(c, a @ b, b.T) ** 2),
    "gemm": lambda c, a, b: np.sum(pb.inplace.gemm(c, a @ b, b, alpha=2.0, trans_b="T") ** 2),
    "elementwise": lambda c, a, b: np.sum(pb.inplace.tanh(pb.inplace.multiply(a, b.T)) ** 2),
    "twice": lambda c, a, b: np.sum(pb.inplace.multiply(pb.inplace.matmul(c, a @ b, b.T), a) ** 3),
}


@pytest.mark.parametrize("name", INPLACE)
@pytest.mark.parametrize("tier", ["unfused", "fused", "stateful", "native"])
def test_what_overwrites_arrays_has_the_gradients_that_it_has_on_the_host_and_leaves_them_as_they_were(name, tier):
    function, arrays = INPLACE[name], (C, W, X[:, None] * np.ones((1, 3)))
    here = pb.value_and_grad(function, wrt=(1, 2))(*[array.copy() for array in arrays])
    there = pb.put(arrays, "cpu")
    before = [array.tensor.numpy().tobytes() for array in there]
    with pb.tier(tier):
        value, gradients = pb.fetch(pb.value_and_grad(function, wrt=(1, 2))(*there))
    _agree(value, here[0])
    for ours, theirs in zip(gradients, here[1], strict=True):
        _agree(ours, theirs)
    assert [array.tensor.numpy().tobytes() for array in there] == before
    moves = pb.put((W, X[:, None] * np.ones((1, 3))), "cpu")
    pushed = pb.jvp(lambda a, b: function(there[0], a, b), there[1:], moves)[1]
    _agree(pb.fetch(pushed), pb.jvp(lambda a, b: function(C.copy(), a, b), arrays[1:], pb.fetch(moves))[1])


@pytest.mark.parametrize("differentiate", [pb.grad, lambda f: lambda c, a, b: pb.jvp(lambda a: f(c, a, b), (a,), (a,))])
def test_an_overwritten_array_is_not_read_by_its_old_name(differentiate):
    def reading(c, a, b):
        new = pb.inplace.matmul(c, a @ b, b.T)
        return np.sum(new) + np.sum(c * a)

    def beside(block, a, b):
        new = pb.inplace.multiply(block.c, a)
        return np.sum(new * block.a)

    arrays = pb.put((np.nan_to_num(C), W, X[:, None] * np.ones((1, 3))), "cpu")
    with pytest.raises(pb.errors.OverwrittenError, match="reads an array that pb.inplace overwrote"):
        differentiate(lambda a, c, b: reading(c, a, b) if differentiate is pb.grad else reading(a, c, b))(*arrays)
    block = pb.put(pb.Block({"c": (3, 4), "a": (3, 4)}, init={"c": np.ones, "a": np.ones}), "cpu")
    _agree(pb.fetch(pb.grad(lambda a: beside(block, a, None))(arrays[1])), np.ones((3, 4)))


def test_an_overwritten_result_that_nothing_reads_is_refused():
    c, a = pb.put((np.ones((3, 4)), W), "cpu")

    def unread(a):
        pb.inplace.multiply(c, a)
        return np.sum(a)

    with pytest.raises(pb.errors.OverwrittenError):
        pb.grad(unread)(a)


def test_rules_of_users_run_on_the_host_and_stateful_ones_by_their_reference():
    @pb.primitive
    def cube(x):
        assert type(x) is np.ndarray
        return x**3

    @cube.pull
    def _(needed, y_bar, y, x):
        return (3 * x**2 * y_bar,)

    @pb.rule.stateful(reference=lambda x: np.tanh(x) * 2)
    def twice(signature):
        raise AssertionError("the reference is used")

    loss = lambda x: np.sum(cube(x)) + np.sum(twice(x))  # noqa: E731
    _agree(pb.fetch(pb.grad(loss)(pb.put(X, "cpu"))), 3 * X**2 + 2 * (1 - np.tanh(X) ** 2))


def test_values_are_looked_at_by_control_flow():
    def loss(x):
        total = 0.0
        for i in range(4):
            if x[i] > 0.5:
                total = total + x[i] ** 2
        return total

    _agree(pb.fetch(pb.grad(loss)(pb.put(X, "cpu"))), pb.grad(loss)(X))
    assert float(np.sum(pb.put(X, "cpu"))) == X.sum()
    assert X[pb.put(np.array(2), "cpu")] == X[2]


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: GRADIENT(torch.tensor(W), X), pb.errors.DeviceError, "w is on cpu, x is on the host: .* pb.put"),
        (lambda: GRADIENT(W, pb.put(X, "cpu")), pb.errors.DeviceError, "w is on the host, x is on cpu"),
        (lambda: pb.put(X, "xpu"), pb.errors.DeviceError, "there is no device 'xpu'"),
        (lambda: pb.put(X, "meta"), pb.errors.DeviceError, "there is no device 'meta'"),
        (lambda: pb.put(np.array(["a"]), "cpu"), pb.errors.DeviceError, "dtype <U1 cannot be put"),
        (
            lambda: pb.grad(np.sum)(torch.ones(3, dtype=torch.bfloat16)),
            pb.errors.DeviceError,
            "bfloat16 has no NumPy dtype",
        ),
        (lambda: pb.grad(np.sum)(torch.arange(3)), pb.errors.DifferentiationError, "an argument of dtype int64"),
        (lambda: np.asarray(pb.put(X, "cpu")), pb.errors.TracingError, "write pb.fetch"),
        (
            lambda: pb.inplace.multiply(*pb.put((W, W), "cpu")),
            pb.errors.DeviceError,
            "outside of a function that is differentiated nothing is written",
        ),
        (
            lambda: pb.grad(lambda a: np.sum(pb.inplace.multiply(C, a)))(pb.put(W, "cpu")),
            pb.errors.DeviceError,
            "writes into an array of the host; put it on the device with pb.put",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence) as raised:
        call()
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_a_device_that_is_not_there_is_refused_where_it_is_named():
    with pytest.raises(pb.errors.DeviceError, match="cuda is not there"), pb.device("cuda"):
        raise AssertionError("inside the block")


@pytest.fixture
def two_devices(monkeypatch):
    """Devices that are named and never computed on; nothing that is known of them stays."""

    def forget():
        values._parsed.cache_clear()
        values._usable.cache_clear()

    there = {
        "is_available": lambda: True,
        "device_count": lambda: 2,
        "current_device": lambda: 0,
        "get_device_capability": lambda _: (9, 0),
    }
    monkeypatch.setattr(torch, "cuda", SimpleNamespace(**there))
    monkeypatch.setattr(torch, "version", SimpleNamespace(cuda="12.8"))
    forget()
    yield
    forget()


@pytest.mark.parametrize(
    ("name", "cuda", "sentence"),
    [
        (
            "cuda",
            {"is_available": lambda: False},
            "cuda is not there: CUDA finds no GPU and driver that PyTorch .* can use",
        ),
        ("cuda:2", {}, "cuda:2 is not there: CUDA sees 2 devices, numbered from 0"),
        (
            "cuda:1",
            {"get_device_capability": lambda _: (7, 5)},
            "cuda:1 has compute capability 7.5; 8.0 is the least that is supported",
        ),
    ],
    ids=["no driver", "no such number", "too old"],
)
def test_a_device_that_cannot_compute_is_refused_where_it_is_named(name, cuda, sentence, two_devices, monkeypatch):
    """As `CUDA_VISIBLE_DEVICES` that names none is: CUDA finds none then."""
    for function, given in cuda.items():
        monkeypatch.setattr(torch.cuda, function, given)
    with pytest.raises(pb.errors.DeviceError, match=sentence) as raised:
        pb.put(X, name)
    assert "\n" not in str(raised.value)


def test_cuda_is_the_device_that_is_current_at_the_call(two_devices, monkeypatch):
    """Two threads may have two current devices, and `torch.cuda.set_device` changes one of them."""
    current = threading.local()
    monkeypatch.setattr(torch.cuda, "current_device", lambda: getattr(current, "number", 0))
    assert device_named("cuda") == torch.device("cuda", 0)
    current.number = 1
    assert device_named("cuda") == torch.device("cuda", 1)
    assert device_named("cuda:0") == torch.device("cuda", 0)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(device_named, "cuda").result() == torch.device("cuda", 0)
    current.number = 2
    with pytest.raises(pb.errors.DeviceError, match="cuda is not there: CUDA sees 2 devices"):
        device_named("cuda")


def test_without_pytorch_one_sentence_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("pullback.devices.cuda")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("pullback.devices.cuda", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(pb.errors.DeviceError, match="^arrays on devices need PyTorch, .*; pip install torch$"):
        pb.put(X, "cuda")


def test_arrays_on_two_devices_are_refused_by_argument():
    with FakeTensorMode():
        w, x = torch.empty(3, 4, device="cuda:0"), torch.empty(4, device="cuda:1")
        with pytest.raises(
            pb.errors.DeviceError, match="^w is on cuda:0, x is on cuda:1: arrays of one call lie in one"
        ):
            GRADIENT(w, x)
        with pytest.raises(
            pb.errors.DeviceError, match="matmul got arrays on cuda:0 and cuda:1; put them on one device"
        ):
            np.matmul(adopted(w), adopted(x))


@pytest.mark.parametrize("tier", ["unfused", "fused", "stateful", "native"])
def test_a_tensor_whose_memory_was_freed_is_refused(tier):
    x = torch.tensor(X)
    with pb.tier(tier):
        GRADIENT(torch.tensor(W), x)
        x.untyped_storage().resize_(0)
        with pytest.raises(pb.errors.DeviceError, match=r"a tensor of shape \(4,\) was freed by its owner"):
            GRADIENT(torch.tensor(W), x)


@pytest.mark.parametrize("tier", ["unfused", "fused", "stateful", "native"])
def test_arguments_may_overlap(tier):
    """The same memory twice, parts that share elements, windows of which each element is in two."""
    whole = np.linspace(-1, 1, 9)
    loss = pb.value_and_grad(lambda a, b, c: np.sum(np.sin(a) * b) + np.sum(c**2), wrt=(0, 1, 2))
    tensor, windows = torch.tensor(whole), np.lib.stride_tricks.sliding_window_view(whole, 2)
    expected = loss(whole[:6], whole[3:], windows)
    with pb.tier(tier):
        for _ in range(4):
            found = loss(tensor[:6], tensor[3:], tensor.as_strided((8, 2), (1, 1)))
            for ours, theirs in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
                _agree(ours, theirs)
    assert tensor.tolist() == whole.tolist()


@pytest.mark.parametrize("tier", ["unfused", "fused", "stateful", "native"])
def test_sums_of_half_precision_overflow_where_numpys_do_and_complex_arrays_have_their_gradients(tier):
    def computed(function, *args):
        plan = function if tier == "unfused" else pb.compile(function, tier=tier)
        for _ in range(4):
            found = pb.fetch(plan(*pb.put(args, "cpu")))
        return found

    half = np.full(70_000, 1, np.float16)
    with np.errstate(over="ignore"):
        for function in (np.sum, np.mean, lambda x: np.sum(x.astype("f4"))):
            ours, theirs = computed(function, half), function(half)
            assert (np.asarray(ours).dtype, float(ours)) == (np.asarray(theirs).dtype, float(theirs))
    z = np.linspace(-1, 1, 6) + 1j * np.linspace(2, 0, 6)
    loss = pb.value_and_grad(lambda z: np.sum(np.abs(np.exp(z) * z) ** 2))
    expected = loss(z)
    for ours, theirs in zip(computed(loss, z), expected, strict=True):
        _agree(ours, theirs)


@pytest.mark.parametrize("tier", ["unfused", "fused", "stateful", "native"])
def test_a_right_side_of_as_many_rows_as_systems_is_of_matrices(tier):
    """PyTorch takes it for a vector of each system."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 3, 3)) + 3 * np.eye(3), rng.standard_normal((3, 3))
    loss = pb.value_and_grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2), wrt=("a", "b"))
    value, gradients = loss(a, b)
    with pb.tier(tier):
        there, found = pb.fetch(loss(*pb.put((a, b), "cpu")))
    _agree(there, value)
    for ours, theirs in zip(found, gradients, strict=True):
        _agree(ours, theirs)
