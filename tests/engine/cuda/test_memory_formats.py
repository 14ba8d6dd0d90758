"""Convolutions have their channels last where a GPU would compute them by tensor cores; their results are in C order all the same."""

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")
dispatching = pytest.importorskip("torch.utils._python_dispatch")
products = pytest.importorskip("pullback.devices.cuda.rows.products")

TIERS = ["unfused", "fused", "stateful", "native"]


class Looking(dispatching.TorchDispatchMode):
    """True for each operand that a convolution reads with its channels last."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name == "convolution":
            self.seen += [args[0], args[1]]
        if name == "convolution_backward":
            self.seen += [x for x, is_read in ((args[1], args[10][1]), (args[2], args[10][0])) if is_read]
        return function(*args, **(kwargs or {}))

    def formats(self):
        return {x.is_contiguous(memory_format=torch.channels_last) for x in self.seen}


def arrays(dtype, channels=(8, 16), side=5):
    rng = np.random.default_rng(3)
    w = rng.normal(size=(channels[1], channels[0], 3, 3)) / 9
    return w.astype(dtype), rng.normal(size=(2, channels[0], side, side)).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "precision", "weight", "groups", "is_last"),
    [
        ("float32", "tf32", (16, 8, 3, 3), 1, True),
        ("float32", "tf32", (4, 12, 3, 3), 1, True),
        ("float32", "tf32", (4, 3, 3, 3), 1, False),
        ("float32", "float32", (16, 8, 3, 3), 1, False),
        ("float16", "float32", (16, 8, 3, 3), 1, True),
        ("float16", "float32", (16, 12, 3, 3), 1, False),
        ("float64", "tf32", (16, 8, 3, 3), 1, False),
        ("float16", "float32", (16, 8, 3, 3), 2, False),
        ("float16", "float32", (16, 8, 3), 1, False),
        ("float16", "float32", (16, 8, 3, 3, 3), 1, False),
    ],
)
def test_channels_are_last_where_tensor_cores_compute(dtype, precision, weight, groups, is_last):
    with pb.precision(precision):
        chosen = products.memory_format(getattr(torch, dtype), weight, groups)
    assert chosen is (torch.channels_last if is_last else torch.contiguous_format)


def loss(w, x):
    y = pb.nn.conv(w, x, stride=2, pad=(1, (0, 1)))
    return np.sum(np.tanh(y) ** 2, dtype=y.dtype)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("dtype", "precision", "formats"), [("f4", "float32", {False}), ("f4", "tf32", {True}), ("f2", "float32", {True})]
)
def test_values_and_gradients_are_those_of_numpy_in_either_format_in_every_tier(tier, dtype, precision, formats):
    w, x = arrays(dtype)
    here = pb.value_and_grad(loss, wrt=(0, 1))(w, x)
    arguments = pb.put((w, x), "cpu")
    function = pb.value_and_grad(loss, wrt=(0, 1))
    with pb.precision(precision):
        plan = function if tier == "unfused" else pb.compile(function, tier=tier)
        looking = Looking()
        with pb.tier("unfused"), pb.debug.poisoning():
            with looking:
                kept = [plan(*arguments)]
            kept += [plan(*arguments) for _ in range(4)]
    assert looking.formats() == formats
    for made in map(pb.fetch, kept):  # all are held, and written to by nobody
        for theirs, ours in zip(pb.trees.flatten(here)[0], pb.trees.flatten(made)[0], strict=True):
            assert ours.dtype == np.dtype(dtype)
            np.testing.assert_allclose(
                ours, theirs, rtol=1e-5 if dtype == "f4" else 2e-2, atol=1e-5 if dtype == "f4" else 2e-2
            )


def test_results_are_in_c_order_whatever_follows_reads(monkeypatch):
    w, x = map(torch.from_numpy, arrays("f2"))
    assert products.memory_format(w.dtype, w.shape, 1) is torch.channels_last
    kinds = {"stride": (1, 1), "pad": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    y = products._conv(None, w.dtype, w, x, **kinds)
    assert y.is_contiguous()
    of = lambda shape: type("Result", (), {"shape": shape})  # noqa: E731
    assert products._conv_weight_gradient(of(w.shape), w.dtype, y, x, kernel=(3, 3), **kinds).is_contiguous()
    narrow = kinds | {"pad": ((0, 0), (0, 0))}
    y = products._conv(None, w.dtype, w, x, **narrow)
    assert products._conv_data_gradient(of(x.shape), w.dtype, w, y, size=(5, 5), **narrow).is_contiguous()
