"""pb.scipy.fft: numpy.fft's rules under SciPy's signatures."""

import numpy as np
import pytest
import scipy.fft

import pullback as pb
from pullback.errors import TracingError
from pullback.scipy import fft


def both_parts(z):
    return 1.3 * np.real(z) + 0.7 * np.imag(z)


RE, IM = np.random.default_rng(0).normal(size=(2, 3, 4))
OF_COMPLEX = ("fft", "ifft", "irfft", "hfft", "fft2", "ifft2", "irfft2", "hfft2", "fftn", "ifftn", "irfftn", "hfftn")
OF_REAL = ("rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn", "fftshift", "ifftshift")


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_transforms_of_complex_values(name):
    def function(re, im):
        return both_parts(getattr(fft, name)(re + 1j * im))

    np.testing.assert_allclose(
        pb.vjp(function, RE, IM)[0], both_parts(getattr(scipy.fft, name)(RE + 1j * IM)), atol=1e-12
    )
    pb.testing.check_grads(function, [RE, IM])


@pytest.mark.parametrize("name", OF_REAL)
def test_transforms_of_real_values(name):
    def function(x):
        return both_parts(getattr(fft, name)(x))

    np.testing.assert_allclose(pb.vjp(function, RE)[0], both_parts(getattr(scipy.fft, name)(RE)), atol=1e-12)
    pb.testing.check_grads(function, [RE])


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_lengths_norms_and_workers(norm):
    def function(re, im):
        return fft.hfftn(re + 1j * im, s=(5, 6), axes=(1, 0), norm=norm, workers=1)

    np.testing.assert_allclose(
        pb.vjp(function, RE, IM)[0], scipy.fft.hfftn(RE + 1j * IM, (5, 6), (1, 0), norm), atol=1e-12
    )
    pb.testing.check_grads(function, [RE, IM])


def test_plans_are_refused_and_plain_values_are_scipys():
    with pytest.raises(TracingError, match="plan"):
        pb.vjp(lambda x: fft.fft(x, plan=1), RE)
    np.testing.assert_array_equal(fft.fft(RE), scipy.fft.fft(RE))
    assert fft.fft.__name__ == "fft"
    assert fft.dct is scipy.fft.dct
