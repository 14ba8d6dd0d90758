"""pb.scipy.signal: convolutions."""

import numpy as np
import pytest
import scipy  # its parts load when a test uses them: every worker collects every test

import pullback as pb
from pullback.errors import NoRuleError, TracingError
from pullback.scipy import integrate, signal


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("function", ["convolve", "fftconvolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", [((6,), (3,)), ((5, 4), (2, 3)), ((4, 4), (3, 4))], ids=str)
def test_values_and_derivatives(function, mode, shapes, agrees_everywhere):
    a, b = (normal(*shape) for shape in shapes)
    ours, scipys = getattr(signal, function), getattr(scipy.signal, function)
    np.testing.assert_allclose(pb.vjp(lambda a, b: ours(a, b, mode), a, b)[0], scipys(a, b, mode), atol=1e-12)
    agrees_everywhere(lambda a, b: pb.scipy.signal.convolve(a, b, mode), a, b)


def test_the_second_may_be_longer():
    a, b = normal(2, 2), normal(3, 4)
    for mode in ("full", "same", "valid"):
        value, _ = pb.vjp(lambda a, m=mode: signal.convolve(a, b, m), a)
        np.testing.assert_allclose(value, scipy.signal.convolve(a, b, mode), atol=1e-12)
        pb.testing.check_grads(lambda a, b, m=mode: signal.convolve(a, b, m), [a, b])


def test_complex_signals():
    def function(re, im, b):
        y = signal.correlate(re + 1j * im, b - 2j * b * b, "same")
        return np.real(y) + 0.5 * np.imag(y)

    pb.testing.check_grads(function, [normal(5), normal(5, 1)[:, 0], normal(3)])


def test_numbers():
    assert pb.grad(lambda a: signal.convolve(a, 3.0))(2.0) == 3.0


def test_bad_arguments_are_said_so():
    for call, word in (
        (lambda a: signal.convolve(a, np.ones((2, 2))), "as many axes"),
        (lambda a: signal.convolve(a, np.ones(2), "none"), "unknown"),
    ):
        with pytest.raises(ValueError, match=word):
            pb.vjp(call, normal(4))
    with pytest.raises(ValueError, match="neither"):
        pb.vjp(lambda a: signal.convolve(a, np.ones((1, 5)), "valid"), normal(4, 4))
    with pytest.raises(TracingError, match="axes"):
        pb.vjp(lambda a: signal.fftconvolve(a, np.ones(2), axes=0), normal(4))
    with pytest.raises(TracingError, match="swap"):
        pb.vjp(lambda a: signal.correlate(a, np.ones(9), "valid"), normal(4))


def test_solvers_that_hide_their_steps_are_refused():
    with pytest.raises(NoRuleError, match=r"pb\.scan"):
        pb.grad(lambda y: np.sum(integrate.odeint(lambda y, t: -y, y, np.linspace(0, 1, 3))))(1.0)
    np.testing.assert_allclose(integrate.odeint(lambda y, t: -y, 1.0, [0.0, 1.0])[-1], np.exp(-1), rtol=1e-6)
