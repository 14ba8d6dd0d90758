"""`pb.device`, `pb.put` and `pb.fetch`: arrays get to a device and back, and what cannot is refused in one sentence."""

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")


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
