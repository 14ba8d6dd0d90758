"""Cumulative sums and products of one long line are scanned in rows, so that no block waits for what another has added so far."""

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")
dispatching = pytest.importorskip("torch.utils._python_dispatch")
LINE = pytest.importorskip("pullback.devices.cuda.rows.reductions").LINE

from tests.engine.cuda.test_steady import noted  # noqa: E402 - loads PyTorch

from pullback.backends.cuda.line_scans import ROW  # noqa: E402

TIERS = ["fused", "stateful", "native"]
SHAPES = [(1,), (LINE,), (LINE + 1,), (3 * LINE,), (1, 5000, 1), (LINE * LINE + 7,)]


class Lines(dispatching.TorchDispatchMode):
    """The lengths of lines of floats that PyTorch scans alone, which it does by blocks that wait for each other."""

    def __init__(self):
        super().__init__()
        self.alone = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name, x = function.overloadpacket.__name__, args[0] if args else None
        if (
            name in ("cumsum", "cumprod")
            and (x.is_floating_point() or x.is_complex())
            and x.numel() == x.shape[args[1]]
        ):
            self.alone.append(x.numel())
        return function(*args, **(kwargs or {}))


def _of(shape, dtype="f8"):
    x = np.random.default_rng(0).uniform(0.99, 1.01, size=shape)
    return (x + 0.001j * x if dtype == "c16" else x).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("scan", [np.cumsum, np.cumprod])
def test_values_are_those_of_numpy_and_no_long_line_is_scanned_alone(scan, dtype, shape):
    x = _of(shape, dtype)
    axis = int(np.argmax(shape))
    with Lines() as lines:
        found = scan(pb.put(x, "cpu"), axis=axis)
    assert all(count <= LINE for count in lines.alone)
    expected = scan(x, axis=axis)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(pb.fetch(found), expected, rtol=2e-3 if dtype == "f4" else 1e-10)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_gradients_are_those_of_numpy_in_every_tier(tier):
    x = _of(1000)

    def loss(x):
        return np.sum(np.cumsum(np.sin(x)) ** 2) + np.sum(np.cumprod(x))

    plan = pb.grad(loss) if tier == "unfused" else pb.compile(pb.grad(loss), tier=tier)
    with Lines() as lines:
        found = [pb.fetch(plan(pb.put(x * scale, "cpu"))) for scale in (1, 1.001, 0.999, 1)]
    assert all(count <= LINE for count in lines.alone)
    np.testing.assert_allclose(found[1], pb.grad(loss)(x * 1.001), rtol=1e-9)
    np.testing.assert_allclose(found[3], pb.grad(loss)(x), rtol=1e-9)


def test_special_values_go_on_from_where_they_are():
    x = _of(1000)
    x[300], x[600] = np.inf, -np.inf
    found = pb.fetch(np.cumsum(pb.put(x, "cpu")))
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, np.cumsum(x), rtol=1e-12)


def test_whole_numbers_and_several_lines_are_scanned_as_they_are():
    counts = np.arange(1000, dtype="i4")
    found = np.cumsum(pb.put(counts, "cpu"))
    assert found.dtype == np.cumsum(counts).dtype
    np.testing.assert_array_equal(pb.fetch(found), np.cumsum(counts))
    x = _of((2, 1000))
    np.testing.assert_allclose(pb.fetch(np.cumsum(pb.put(x, "cpu"), axis=1)), np.cumsum(x, axis=1), rtol=1e-12)


M = np.random.default_rng(1).normal(size=(6, 1, 5))

#: Functions of an array of several lines.
OF_LINES = {
    "sums": lambda x: np.sum(np.sin(np.cumsum(np.tanh(x), axis=0))),
    "sums along the last axis": lambda x: np.sum(np.cumsum(x, axis=2) ** 2),
    "sums along an axis of one": lambda x: np.sum(np.cumsum(x, axis=1) ** 2),
    "sums back to front": lambda x: np.sum(np.cumsum(x[::-1, :, ::2], axis=0) ** 3),
    "sums of a row that is stretched": lambda x: np.sum(np.cumsum(np.broadcast_to(x[2], (4, 6, 1, 5)), axis=1) ** 2),
    "products": lambda x: np.sum(np.cumprod(x, axis=0) ** 2),
    "products along the last axis": lambda x: np.sum(np.cumprod(np.sin(x), axis=-1)),
    "products with zeros": lambda x: np.sum(np.cumprod(np.where(x > 0.5, x, 0), axis=0) * x),
    "two ways": lambda x: np.sum(np.cumsum(np.cumsum(x, axis=0)[::-1], axis=2) * np.tril(x[:, 0])[:, None]),
}


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", OF_LINES)
def test_several_lines_are_scanned_in_memory_that_is_kept(name, dtype, tier):
    x, loss = M.astype(dtype), OF_LINES[name]
    plan, expected = pb.compile(pb.value_and_grad(loss), tier=tier), pb.value_and_grad(loss)(x)
    for _ in range(4):
        value, gradient = pb.fetch(plan(pb.put(x, "cpu")))
        np.testing.assert_allclose(value, expected[0], rtol=2e-5 if dtype == "f4" else 1e-11)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-4, atol=1e-4 if dtype == "f4" else 1e-11)
        assert gradient.dtype == x.dtype
    summary = plan.summary()
    assert (summary["fallbacks"], summary["transient"]) == ([], [])
    if tier != "fused":
        assert noted(plan, x).requests == {}


#: Functions of an array of one line.
OF_A_LINE = {
    "sums": lambda x: np.sum(np.tanh(np.cumsum(np.sin(x))) * x),
    "products": lambda x: np.sum(np.cumprod(x) ** 2),
    "sums back to front": lambda x: np.sum(np.cumsum(x[::-2]) ** 3),
    "a column": lambda x: np.sum(
        np.cumsum(x[:, None, None], axis=0) ** 2 * np.cumprod(x[None], axis=1)[0, :, None, None]
    ),
    "in a loop": lambda x: np.sum(pb.fori_loop(0, 2, lambda _, c: np.cumsum(c) * 0.01, x)),
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("count", [1, 2 * ROW - 1, 2 * ROW, 3 * ROW + 1, 2 * ROW * ROW + 5])
@pytest.mark.parametrize("name", OF_A_LINE)
def test_a_line_alone_is_scanned_in_memory_that_is_kept(name, count, tier):
    x, loss = _of((count,)), OF_A_LINE[name]
    plan, expected = pb.compile(pb.value_and_grad(loss), tier=tier), pb.value_and_grad(loss)(x)
    with Lines() as lines:
        for _ in range(3):
            value, gradient = pb.fetch(plan(pb.put(x, "cpu")))
    assert lines.alone == []
    np.testing.assert_allclose(value, expected[0], rtol=1e-9)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-8, atol=1e-8 * np.max(np.abs(expected[1])))
    summary = plan.summary()
    assert (summary["fallbacks"], summary["transient"]) == ([], [])
    if tier != "fused":
        assert noted(plan, x).requests == {}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "?"])
@pytest.mark.parametrize("scan", [np.cumsum, np.cumprod])
def test_a_line_alone_has_the_type_of_numpys(scan, dtype, tier):
    for shape in ((7,), (1, 1000, 1)):
        x = (_of(shape) > 0.9999) if dtype == "?" else (3 * _of(shape)).astype(dtype)
        axis = int(np.argmax(shape))
        plan = pb.compile(lambda x, axis=axis: scan(x, axis=axis), tier=tier)
        with np.errstate(over="ignore"):
            expected = scan(x, axis=axis)
        for _ in range(3):
            found = pb.fetch(plan(pb.put(x, "cpu")))
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        if dtype == "f4":
            np.testing.assert_allclose(found, expected, rtol=2e-3)
        else:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("place", [0, ROW - 1, ROW, 5 * ROW, 999])
def test_special_values_of_a_line_go_on_from_where_they_are(place, tier):
    x = _of((5 * ROW + 3,))
    x[place], x[place + 2] = np.inf, -np.inf
    plan = pb.compile(lambda x: (np.cumsum(x), np.cumprod(x)), tier=tier)
    with np.errstate(invalid="ignore"):
        expected = np.cumsum(x), np.cumprod(x)
    for _ in range(3):
        found = pb.fetch(plan(pb.put(x, "cpu")))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("tier", ["stateful", "native"])
def test_the_derivative_of_a_product_is_one_kernel_for_all_of_its_steps(tier):
    for x, axis in ((_of((700,)), 0), (M, 0)):
        plan = pb.compile(pb.grad(lambda x, axis=axis: np.sum(np.cumprod(x, axis=axis) ** 2)), tier=tier)
        for _ in range(3):
            plan(pb.put(x, "cpu"))
        assert plan.explain().count(f" {x.shape[axis]} steps of each line; 1 kernel") == 1
        if tier == "native":
            assert plan.summary()["graph"]["nodes"] < 40


@pytest.mark.parametrize("tier", ["stateful", "native"])
def test_special_values_and_no_elements_are_numpys(tier):
    x = M.copy()
    x[1, 0, 2], x[3, 0, 1], x[2, 0, 4] = np.nan, np.inf, -np.inf

    def scanned(x):
        return np.cumsum(x, axis=0), np.cumprod(x, axis=0), np.cumsum(x[::-1], axis=2)

    for own in (x, M[:0], M[:1]):
        plan = pb.compile(scanned, tier=tier)
        for _ in range(3):
            found = pb.fetch(plan(pb.put(own, "cpu")))
        with np.errstate(invalid="ignore"):
            for ours, theirs in zip(found, scanned(own), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("tier", ["stateful", "native"])
def test_what_a_product_reads_back_to_front_is_a_kernel_and_asks_for_no_memory(tier):
    def loss(x, w):
        return np.sum((x[::-1, ::-2] @ w) ** 2)

    x, w = np.arange(12.0).reshape(3, 4), np.ones((2, 3))
    plan, expected = (
        pb.compile(pb.value_and_grad(loss, wrt=(0, 1)), tier=tier),
        pb.value_and_grad(loss, wrt=(0, 1))(x, w),
    )
    for _ in range(4):
        value, (dx, dw) = pb.fetch(plan(*pb.put((x, w), "cpu")))
        np.testing.assert_allclose(value, expected[0])
        np.testing.assert_allclose(dx, expected[1][0])
        np.testing.assert_allclose(dw, expected[1][1])
    assert plan.summary()["transient"] == []
    assert noted(plan, x, w).requests == {}
