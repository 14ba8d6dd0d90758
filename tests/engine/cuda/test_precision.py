"""Products of float32 are in full precision unless `pb.precision("tf32")` is around, whatever PyTorch's own switches say."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")
dispatching = pytest.importorskip("torch.utils._python_dispatch")
products = pytest.importorskip("pullback.devices.cuda.rows.products")

X = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32) / 3
TIERS = ["unfused", "fused", "stateful", "native"]
PRODUCTS = {"mm", "bmm", "mv", "dot", "addmm"}


class Looking(dispatching.TorchDispatchMode):
    """The switches that each product and convolution finds."""

    def __init__(self):
        super().__init__()
        self.products, self.convolutions = [], []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name in PRODUCTS:
            self.products.append(products._allows_tf32())
        if name.startswith("convolution"):
            self.convolutions.append(torch.backends.cudnn.allow_tf32)
        return function(*args, **(kwargs or {}))


def _older(value):
    torch.backends.cuda.matmul.allow_tf32 = value


def _newer(value):
    torch.backends.cuda.matmul.fp32_precision = "tf32" if value else "ieee"


def _medium(value):
    torch.set_float32_matmul_precision("medium")


def _state():
    """All switches of PyTorch's; the older one raises where the newer one was set alone."""
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:
        older = None
    of_host = getattr(getattr(torch.backends.mkldnn, "matmul", None), "fp32_precision", None)
    return older, getattr(torch.backends.cuda.matmul, "fp32_precision", None), of_host, torch.backends.cudnn.allow_tf32


@pytest.fixture(
    params=[
        None,
        (_older, True),
        (_medium, True),
        *([(_newer, True)] if hasattr(torch.backends.cuda.matmul, "fp32_precision") else []),
    ],
    ids=lambda own: "as it is" if own is None else own[0].__name__[1:],
)
def switched(request):
    """PyTorch's switch as it is, turned on, and turned on by its newer name."""
    newer = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    if request.param is not None:
        set_to, value = request.param
        set_to(value)
    yield
    torch.set_float32_matmul_precision("highest")
    if newer is not None:
        torch.backends.cuda.matmul.fp32_precision = newer


def _loss(x):
    return np.sum(np.tanh(np.tanh(x @ x) @ x[0]) ** 2) + np.sum(x[None] @ np.stack([x, x]))


def _gradient(tier):
    return pb.grad(_loss) if tier == "unfused" else pb.compile(pb.grad(_loss), tier=tier)


@pytest.mark.parametrize("tier", TIERS)
def test_products_find_the_switch_that_is_asked_for_and_leave_it_as_it_was(tier, switched):
    """One plan, outside and inside of a block: what was captured outside is not launched inside."""
    gradient, x, before = _gradient(tier), torch.tensor(X), _state()
    for name in ("float32", "tf32", "float32"):
        with Looking() as looking, pb.precision(name):
            for _ in range(3):
                ours = gradient(x)
        assert looking.products or (tier == "native" and name == "float32")  # launched, from the fourth call on
        assert set(looking.products) <= {name == "tf32"}
        assert _state() == before
        np.testing.assert_allclose(ours, pb.grad(_loss)(X), rtol=1e-4, atol=1e-5)
    with Looking() as looking:
        gradient(x)
    assert set(looking.products) <= {False}


@pytest.mark.parametrize("tier", TIERS)
def test_convolutions_do_so_too(tier, switched):
    def loss(w, x):
        return np.sum(pb.nn.conv(w, x) ** 2)

    w, x = (torch.tensor(np.ones(shape, np.float32)) for shape in ((2, 1, 3, 3), (1, 1, 6, 6)))
    gradient = pb.grad(loss) if tier == "unfused" else pb.compile(pb.grad(loss), tier=tier)
    for name in ("float32", "tf32"):
        before = _state()
        with Looking() as looking, pb.precision(name):
            gradient(w, x)
        assert looking.convolutions
        assert set(looking.convolutions) == {name == "tf32"}
        assert _state() == before


def test_products_of_other_dtypes_touch_no_switch(monkeypatch):
    monkeypatch.setattr(products, "_allows_tf32", lambda: 1 / 0)
    with pb.precision("tf32"):
        pb.grad(lambda x: np.sum(x @ x))(torch.tensor(X.astype(np.float64)))


def test_the_switch_is_put_back_where_a_product_fails():
    before, x = _state(), torch.tensor(X)
    with pb.precision("tf32"), pytest.raises(ZeroDivisionError):
        products.multiplied(lambda a, b: 1 / 0, x, x)
    assert _state() == before


class _Lock:
    """A lock that tells when a thread other than the one that made it comes to it."""

    def __init__(self, comes):
        self._lock, self._comes, self._maker = threading.RLock(), comes, threading.get_ident()

    def __enter__(self):
        if threading.get_ident() != self._maker:
            self._comes.set()
        return self._lock.__enter__()

    def __exit__(self, *error):
        return self._lock.__exit__(*error)


def _in_turn(monkeypatch, first, second):
    """Run two functions at once: `first(meanwhile)` calls meanwhile() with the switch set, and `second(comes, left)` starts there.

    It goes on when the second waits for the lock, or has come into its product by calling comes(); left() waits until the first is over.
    """
    comes, is_over, begun = threading.Event(), threading.Event(), []
    monkeypatch.setattr(products, "_switches", _Lock(comes), raising=False)

    def beside():
        try:
            second(comes.set, is_over.wait)
        finally:
            comes.set()

    with ThreadPoolExecutor(1) as thread:

        def meanwhile():
            begun.append(thread.submit(beside))
            comes.wait()

        try:
            first(meanwhile)
        finally:
            is_over.set()
        begun[0].result()


@pytest.mark.parametrize("second_precision", ["float32", "tf32"])
def test_products_of_two_threads_find_the_switch_each_wants_and_leave_the_users(
    second_precision, monkeypatch, switched
):
    before, x, found = _state(), torch.tensor(X), {}
    first_precision = "float32" if products._allows_tf32() else "tf32"

    def first(meanwhile):
        def multiply(a, b):
            meanwhile()
            found["first"] = products._allows_tf32()
            return a

        with pb.precision(first_precision):
            products.multiplied(multiply, x, x)

    def second(comes, left):
        def multiply(a, b):
            comes()
            left()
            found["second"] = products._allows_tf32()
            return a

        with pb.precision(second_precision):
            products.multiplied(multiply, x, x)

    _in_turn(monkeypatch, first, second)
    assert found == {"first": first_precision == "tf32", "second": second_precision == "tf32"}
    assert _state() == before


def test_convolutions_of_two_threads_do_so_too(monkeypatch):
    before, found = _state(), {}

    def first(meanwhile):
        with pb.precision("tf32"), products._settled():
            meanwhile()
            found["first"] = torch.backends.cudnn.allow_tf32

    def second(comes, left):
        with products._settled():
            comes()
            left()
            found["second"] = torch.backends.cudnn.allow_tf32

    _in_turn(monkeypatch, first, second)
    assert found == {"first": True, "second": False}
    assert _state() == before


def test_a_product_within_a_product_finds_its_own_switch():
    before, x, found = _state(), torch.tensor(X), []

    def multiply(a, b):
        with pb.precision("float32"):
            products.multiplied(lambda a, b: found.append(products._allows_tf32()), a, b)
        found.append(products._allows_tf32())

    with pb.precision("tf32"):
        products.multiplied(multiply, x, x)
    assert found == [False, True]
    assert _state() == before


def test_a_precision_that_is_not_there_is_refused():
    with (
        pytest.raises(pb.errors.DeviceError, match="there is no precision 'bf16'; write 'float32' or 'tf32'"),
        pb.precision("bf16"),
    ):
        pass
