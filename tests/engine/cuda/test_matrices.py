"""Linear algebra and Fourier transforms on a device: NumPy's values, dtypes and errors."""

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from pullback.devices.cuda import eager  # noqa: E402 - loads PyTorch

RNG = np.random.default_rng(0)
TIERS = ["unfused", "fused", "stateful", "native"]
A, B = RNG.normal(size=(2, 4, 4)) + 4 * np.eye(4), RNG.normal(size=(4, 3))


def _hermitian(a):
    """Positive definite for `A`."""
    return a + np.conjugate(np.swapaxes(a, -1, -2))


FUNCTIONS = {
    "cholesky": lambda a: np.linalg.cholesky(_hermitian(a)),
    "eigenvalues": lambda a: np.linalg.eigh(_hermitian(a))[0],
    "eigenvectors, put together": lambda a: _of_eigenvectors(*np.linalg.eigh(_hermitian(a), "U")),
    "eigvalsh of the upper triangle": lambda a: np.linalg.eigvalsh(a, "U"),
    "eigvalsh of the lower triangle": lambda a: np.linalg.eigvalsh(a),
    "qr, left": lambda a: np.linalg.qr(a[..., :3])[0],
    "qr, right": lambda a: np.linalg.qr(a[..., :3])[1],
    "qr of wide matrices": lambda a: np.linalg.qr(a[..., :3, :] * 1.0)[1],
    "sign of slogdet": lambda a: np.linalg.slogdet(a)[0],
    "logarithm of slogdet": lambda a: np.linalg.slogdet(a)[1],
    "slogdet of singular matrices": lambda a: np.linalg.slogdet(a * 0)[1],
    "singular values": lambda a: np.linalg.svd(a, compute_uv=False),
    "singular vectors, put together": lambda a: _together(*np.linalg.svd(a[..., :3], full_matrices=False)),
    "singular vectors of squares": lambda a: np.abs(np.linalg.svd(a, full_matrices=True)[0]),
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


def _of_eigenvectors(w, v):
    return _together(v, w, np.conjugate(np.swapaxes(v, -1, -2)))


def _together(u, s, vh):
    return (u * s[..., None, :]) @ vh


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
    bound = (1e-3 if here.dtype in (np.float32, np.complex64) else 1e-9) * np.max(
        np.abs(here), where=np.isfinite(here), initial=0
    )
    np.testing.assert_allclose(there, here, rtol=0, atol=bound)
    assert not eager.DEVICE.on_the_host


_WEIGHTS = np.arange(1.0, 5)
LOSSES = {
    "cholesky": lambda a: np.sum(np.sin(np.linalg.cholesky(_hermitian(a)))),
    "det": lambda a: np.sum(np.linalg.det(a)),
    "det of singular matrices": lambda a: np.sum(
        np.linalg.det(np.concatenate([a[..., :3, :], a[..., :1, :]], axis=-2))
    ),
    "eigh": lambda a: np.sum(np.linalg.eigh(_hermitian(a))[1] ** 2 * _WEIGHTS),
    "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(_hermitian(a), "U") * _WEIGHTS),
    "inv": lambda a: np.sum(np.sin(np.linalg.inv(a))),
    "pinv": lambda a: np.sum(np.sin(np.linalg.pinv(a[..., :2]))),
    "qr": lambda a: np.sum(np.sin(np.linalg.qr(a[..., :3])[0]) * _WEIGHTS[:3]) + np.sum(np.linalg.qr(a)[1] ** 3),
    "slogdet": lambda a: np.sum(np.linalg.slogdet(a)[1] * np.linalg.slogdet(a)[0]),
    "solve": lambda a: np.sum(np.sin(np.linalg.solve(a, np.swapaxes(a, -1, -2)))),
    "svd": lambda a: np.sum(np.abs(np.linalg.svd(a[..., :3], full_matrices=False)[2]) * _WEIGHTS[:3]),
    "svdvals": lambda a: np.sum(np.linalg.svd(a, compute_uv=False) * _WEIGHTS),
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_numpy_and_nothing_runs_on_the_host(name, tier):
    gradient = pb.value_and_grad(LOSSES[name])
    run = gradient if tier == "unfused" else pb.compile(gradient, tier=tier)
    eager.DEVICE.on_the_host.clear()
    for scale in (1, 1.5, 1, 1):
        for ours, theirs in zip(pb.fetch(run(pb.put(scale * A, "cpu"))), gradient(scale * A), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * max(1, np.max(np.abs(theirs))))
    assert not eager.DEVICE.on_the_host
    if tier != "unfused":
        assert not any("on the host: its operands" in reason for reason in run.summary()["fallbacks"])


def test_a_cholesky_factor_of_nan_is_nan_and_stands_beside_others_of_a_stack():
    a = np.stack([np.eye(2), np.full((2, 2), np.nan)])
    np.testing.assert_array_equal(pb.fetch(np.linalg.cholesky(pb.put(a, "cpu"))), np.linalg.cholesky(a))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
def test_sign_and_logarithm_of_a_determinant_are_numpys_where_the_last_column_is_special(value, dtype, tier):
    """Which rows are swapped is settled before the last column: the library does not matter."""
    a = RNG.normal(size=(40, 4, 4)).astype(dtype)
    a[:, :, -1] = value
    run = np.linalg.slogdet if tier == "unfused" else pb.compile(lambda a: tuple(np.linalg.slogdet(a)), tier=tier)
    with np.errstate(all="ignore"):
        expected = np.linalg.slogdet(a)
    for ours, theirs in zip(pb.fetch(run(pb.put(a, "cpu"))), expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_the_sign_of_a_determinant_of_nan_is_one_or_minus_one(n):
    for place in range(max(1, n * n)):
        a = RNG.normal(size=(n, n))
        a.flat[place : place + 1] = np.nan
        with np.errstate(all="ignore"):
            expected = np.linalg.slogdet(a)
        sign, logarithm = pb.fetch(np.linalg.slogdet(pb.put(a, "cpu")))
        np.testing.assert_array_equal((abs(sign), logarithm), (abs(expected[0]), expected[1]))


@pytest.mark.parametrize("a", [[[-1, np.nan], [np.nan, 1]], [[-1, np.nan], [0, 1]], [[1, np.nan], [0, -1]]])
def test_a_matrix_that_is_not_positive_before_any_nan_has_no_cholesky_factor(a):
    for matrix in (np.array(a, float), pb.put(np.array(a, float), "cpu")):
        with pytest.raises(np.linalg.LinAlgError):
            np.linalg.cholesky(matrix)


@pytest.mark.parametrize("name", ["eig", "lu_factor"])
def test_what_has_no_row_runs_on_the_host_and_plans_say_so(name):
    function = {
        "eig": lambda a: np.sum(np.abs(np.linalg.eig(a)[0])),
        "lu_factor": lambda a: np.sum(np.sin(pb.scipy.linalg.lu_factor(a)[0])),
    }[name]
    plan = pb.compile(function, tier="stateful")
    eager.DEVICE.on_the_host.clear()
    np.testing.assert_allclose(pb.fetch(plan(pb.put(A[0], "cpu"))), function(A[0]), rtol=1e-12)
    assert eager.DEVICE.on_the_host[name]
    assert any(name in reason for reason in plan.summary()["fallbacks"])


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
    "cholesky": (lambda a: np.linalg.cholesky(a), -SINGULAR),
    "cholesky of one of a stack": (lambda a: np.linalg.cholesky(a), np.stack([np.eye(2), -SINGULAR])),
    "eigh": (lambda a: np.linalg.eigh(a)[1], np.full((3, 3), np.nan)),
    "eigvalsh": (lambda a: np.linalg.eigvalsh(a), np.full((3, 3), np.nan)),
    "svd": (lambda a: np.linalg.svd(a)[0], np.full((2, 2), np.nan)),
    "svdvals": (lambda a: np.linalg.svd(a, compute_uv=False), np.full((2, 2), np.nan)),
    "one of a stack": (lambda a: np.linalg.inv(a), np.stack([np.eye(2), SINGULAR])),
    "pinv": (lambda a: np.linalg.pinv(a), np.full((2, 2), np.nan)),
    "solve_triangular": (
        lambda a: pb.scipy.linalg.solve_triangular(a, a),
        np.triu(np.ones((3, 3)), 1) + np.diag([1, 0, 2]),
    ),
}


@pytest.mark.parametrize("tier", TIERS)
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


@pytest.mark.parametrize("name", ["digamma", "gammaln", "k0", "k0e", "k1", "k1e", "log_expit", "loggamma"])
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
