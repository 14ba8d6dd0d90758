"""numpy.fft: every transform is linear, so its derivative is known exactly."""

from functools import partial

import numpy as np
import pytest

import pullback as pb
from pullback.errors import TracingError

NORMS = ("backward", "ortho", "forward")


def both_parts(z):
    """A real function that sees the real and the imaginary part."""
    return 1.3 * np.real(z) + 0.7 * np.imag(z)


def real(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def complex_(*shape):
    return real(*shape) + 1j * real(*shape, 1)[..., 0]


OF_COMPLEX = {
    **{
        f"{name} of {shape}, {norm}": (partial(getattr(np.fft, name), norm=norm), shape)
        for name in ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn")
        for shape in ((2, 5), (3, 4))
        for norm in NORMS
    },
    **{
        f"{name} to {n}, {norm}": (partial(getattr(np.fft, name), n=n, axis=0, norm=norm), (4, 2))
        for name in ("irfft", "hfft")
        for n in (4, 5, 6, 7)
        for norm in NORMS
    },
    **{
        f"irfftn to {n}, {norm}": (lambda a, n=n, norm=norm: np.fft.irfftn(a, (3, n), (0, 1), norm), (2, 4))
        for n in (5, 6)
        for norm in NORMS
    },
    "fft, cut": (lambda a: np.fft.fft(a, 3), (2, 5)),
    "fft, filled up": (lambda a: np.fft.fft(a, 7, axis=0), (2, 5)),
    "fftn, lengths": (lambda a: np.fft.fftn(a, s=(4, 2), axes=(0, 2)), (3, 2, 3)),
    "fftn, whole lengths": (lambda a: np.fft.fftn(a, s=(-1, 2), axes=(1, 0)), (3, 4)),
    "fftn, an axis twice": (lambda a: np.fft.fftn(a, axes=(0, 1, 0)), (3, 2)),
    "irfft, default length": (np.fft.irfft, (2, 4)),
    "irfft2": (np.fft.irfft2, (2, 4)),
    "fftshift": (np.fft.fftshift, (3, 4)),
    "ifftshift": (lambda a: np.fft.ifftshift(a, axes=0), (3, 5)),
}
OF_REAL = {
    **{
        f"{name} of {shape}, {norm}": (partial(getattr(np.fft, name), norm=norm), shape)
        for name in ("fft", "ifftn", "rfft", "ihfft", "rfft2", "rfftn")
        for shape in ((2, 5), (3, 4))
        for norm in NORMS
    },
    "rfft, cut": (lambda a: np.fft.rfft(a, 3), (2, 5)),
    "rfft, filled up": (lambda a: np.fft.rfft(a, 8, axis=0), (2, 5)),
    "rfftn, lengths": (lambda a: np.fft.rfftn(a, s=(4, 2), axes=(0, 2)), (3, 2, 3)),
    "irfft of real lines": (lambda a: np.fft.irfft(a, 5), (2, 3)),
}


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("name", OF_REAL)
def test_transforms_of_real_values(name, agrees_everywhere):
    function, shape = OF_REAL[name]
    agrees_everywhere(lambda a: both_parts(function(a)), real(*shape))


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("name", OF_COMPLEX)
def test_transforms_of_complex_values(name, agrees_everywhere):
    function, shape = OF_COMPLEX[name]
    z = complex_(*shape)
    agrees_everywhere(lambda re, im: both_parts(function(re + 1j * im)), z.real, z.imag)


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_the_complex_gradient_is_made_of_the_real_ones(name):
    function, shape = OF_COMPLEX[name]
    z = complex_(*shape)
    weights = real(*np.shape(function(z)))

    def loss(z):
        return np.sum(weights * both_parts(function(z)))

    by_real, by_imaginary = pb.grad(lambda re, im: loss(re + 1j * im), wrt=(0, 1))(z.real, z.imag)
    np.testing.assert_allclose(pb.grad(loss)(z), by_real - 1j * by_imaginary, atol=1e-12)


def test_real_values_have_real_gradients_and_keep_their_precision():
    for dtype in (np.float32, np.float64):
        x = real(6).astype(dtype)
        assert pb.grad(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2))(x).dtype == dtype
        assert pb.grad(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2))(x).dtype == dtype


def test_parseval():
    x = real(7)
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(np.abs(np.fft.fft(x, norm="ortho")) ** 2))(x), 2 * x)


@pytest.mark.parametrize("transform", [np.fft.fft, np.fft.rfft, np.fft.fftn])
def test_writing_into_an_array_is_refused(transform):
    with pytest.raises(TracingError, match="out"):
        pb.grad(lambda x: np.sum(np.abs(transform(x, out=np.zeros(4, complex)))))(real(4))


def test_bad_arguments_are_said_so():
    with pytest.raises(ValueError, match="backward"):
        pb.grad(lambda x: np.sum(np.abs(np.fft.fft(x, norm="none"))))(real(4))
    with pytest.raises(TypeError, match="real values"):
        pb.grad(lambda z: np.sum(np.abs(np.fft.rfft(z))))(complex_(4))
    with pytest.raises(ValueError, match="samples"):
        pb.grad(lambda z: np.sum(np.fft.irfft(z, 0)))(complex_(4))
    for transform in (np.fft.fft, np.fft.rfft, np.fft.ihfft):
        with pytest.raises(ValueError, match="-1 samples"):
            pb.grad(lambda x, transform=transform: np.sum(np.abs(transform(x, -1))))(real(4))


WITHOUT_RULE = {"fftfreq": "takes no array", "rfftfreq": "takes no array", "test": "numpy's own tests"}


def test_every_function_has_a_rule_or_a_reason():
    called = {name.split(",")[0].split(" ")[0] for name in (*OF_REAL, *OF_COMPLEX)}
    assert called | set(WITHOUT_RULE) == set(np.fft.__all__) | {"test"}
