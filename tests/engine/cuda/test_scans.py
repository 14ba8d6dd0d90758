"""Cumulative sums and products of one long line are scanned in rows, so that no block waits for what another has added so far."""

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")
dispatching = pytest.importorskip("torch.utils._python_dispatch")
LINE = pytest.importorskip("pullback.devices.cuda.rows.reductions").LINE

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
