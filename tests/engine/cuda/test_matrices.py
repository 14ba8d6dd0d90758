"""Linear algebra and Fourier transforms on a device: NumPy's values, dtypes and errors."""

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from pullback.devices.cuda import eager  # noqa: E402 - loads PyTorch

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 4, 4)) + 4 * np.eye(4), RNG.normal(size=(4, 3))

FUNCTIONS = {
    "det": np.linalg.det,
    "inv": np.linalg.inv,
    "pinv": lambda a: np.linalg.pinv(a[..., :3]),
    "pinv with a cutoff": lambda a: np.linalg.pinv(a, rcond=0.5),
    "pinv of symmetric matrices": lambda a: np.linalg.pinv(a + np.swapaxes(a, -1, -2), hermitian=True),
    "solve": lambda a: np.linalg.solve(a, a[..., :2]),
    "expm": lambda a: pb.scipy.linalg.expm(0.1 * a),
    "fft": np.fft.fft,
    "ifftn": lambda a: np.fft.ifftn(a, axes=(1, 2), norm="ortho"),
    "fft along one axis twice": lambda a: np.fft.fftn(a, axes=(1, 1)),
    "irfft": lambda a: np.fft.irfft(a, norm="forward"),
}
DTYPES = ["float32", "float64", "int32", "bool", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_dtypes_are_those_of_numpy_and_nothing_runs_on_the_host(name, dtype):
    a = (A > 0) | np.eye(4, dtype=bool) if dtype == "bool" else A.astype(dtype)
    try:
        here = FUNCTIONS[name](a)
    except (TypeError, ValueError, np.linalg.LinAlgError) as error:
        with pytest.raises(type(error)):
            FUNCTIONS[name](pb.put(a, "cpu"))
        return
    eager.DEVICE.on_the_host.clear()
    there = pb.fetch(FUNCTIONS[name](pb.put(a, "cpu")))
    assert (there.shape, there.dtype) == (here.shape, here.dtype)
    bound = (1e-3 if here.dtype in (np.float32, np.complex64) else 1e-9) * np.max(np.abs(here))
    np.testing.assert_allclose(there, here, rtol=0, atol=bound)
    assert not eager.DEVICE.on_the_host


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [6, 7])
def test_real_transforms_there_and_back(dtype, n):
    x = RNG.normal(size=(3, n)).astype(dtype)
    there = np.fft.rfft(pb.put(x, "cpu"))
    np.testing.assert_allclose(pb.fetch(there), np.fft.rfft(x), rtol=1e-4, atol=1e-5)
    back = pb.fetch(np.fft.irfft(there, n))
    assert back.dtype == np.fft.irfft(np.fft.rfft(x), n).dtype
    np.testing.assert_allclose(back, x, rtol=1e-4, atol=1e-5)


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
REFUSED = {
    "inv": (lambda a: np.linalg.inv(a), SINGULAR),
    "solve": (lambda a: np.linalg.solve(a, a), SINGULAR),
    "one of a stack": (lambda a: np.linalg.inv(a), np.stack([np.eye(2), SINGULAR])),
    "pinv": (lambda a: np.linalg.pinv(a), np.full((2, 2), np.nan)),
    "solve_triangular": (
        lambda a: pb.scipy.linalg.solve_triangular(a, a),
        np.triu(np.ones((3, 3)), 1) + np.diag([1, 0, 2]),
    ),
}


@pytest.mark.parametrize("tier", ["unfused", "fused", "stateful", "native"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused_with_its_error_and_the_next_call_is_right(name, tier):
    function, a = REFUSED[name]
    run = function if tier == "unfused" else pb.compile(function, tier=tier)
    with pytest.raises(np.linalg.LinAlgError) as here:
        function(a)
    for _ in range(4):
        with pytest.raises(np.linalg.LinAlgError) as there:
            run(pb.put(a, "cpu"))
        assert str(here.value) in str(there.value)
    good = np.broadcast_to(np.eye(a.shape[-1]), a.shape).copy()
    np.testing.assert_allclose(pb.fetch(run(pb.put(good, "cpu"))), function(good), atol=1e-12)


@pytest.mark.parametrize("name", ["k0", "k0e", "k1", "k1e", "log_expit", "loggamma"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_those_of_scipy(name, dtype):
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, -1.5, -3.0, 1e-3, 0.5, 2, 7, 20, 60, 700, 1e5], dtype)
    function = getattr(pb.scipy.special, name)
    eager.DEVICE.on_the_host.clear()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            pb.fetch(function(pb.put(x, "cpu"))), function(x), rtol=2e-5 if dtype == "float32" else 1e-10
        )
    assert not eager.DEVICE.on_the_host


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"])
def test_bessel_functions_of_pytorch_are_not_good_enough_yet(name):
    """Once they are, rules on the host may have them."""
    from scipy import special

    x = np.linspace(5, 8, 100)
    error = np.abs(getattr(torch.special, name)(torch.tensor(x)).numpy() - getattr(special, name[-2:])(x))
    assert np.max(error) > 1e-9
