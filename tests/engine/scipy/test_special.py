"""pb.scipy.special: functions that are no ufuncs."""

import numpy as np
import pytest
import scipy.special as sc

import pullback as pb
from pullback.errors import NoRuleError, TracingError
from pullback.scipy import special


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


X = normal(3, 4)
FUNCTIONS = {
    "logsumexp": (special.logsumexp, X),
    "logsumexp, axis": (lambda x: special.logsumexp(x, axis=1), X),
    "logsumexp, axes": (lambda x: special.logsumexp(x, axis=(0, 2), keepdims=True), normal(2, 3, 4)),
    "logsumexp, weights": (lambda x, b: special.logsumexp(x, axis=0, b=b * b), X, normal(3, 4)),
    "logsumexp, signs": (lambda x, b: special.logsumexp(x, axis=0, b=b, return_sign=True)[0], X, normal(3, 1)),
    "softmax": (special.softmax, X),
    "softmax, axis": (lambda x: special.softmax(x, axis=-1), X),
    "log_softmax": (special.log_softmax, X),
    "log_softmax, axis": (lambda x: special.log_softmax(x, axis=(0, 1)), normal(2, 3, 4)),
    "polygamma, 0": (lambda x: special.polygamma(0, np.abs(x) + 1), X),
    "polygamma, 2": (lambda x: special.polygamma(2, np.abs(x) + 1), X),
    "polygamma, several": (lambda x: special.polygamma(np.arange(4), np.abs(x) + 1), X),
    "multigammaln": (lambda x: special.multigammaln(x * x + 2, 3), X),
    "zeta": (lambda q: special.zeta(2.5, q * q + 1), X),
    "softplus": (special.softplus, X),
}


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_derivatives_tiers_and_batches_agree(name, agrees_everywhere):
    function, *args = FUNCTIONS[name]
    if name in ("logsumexp", "softmax", "log_softmax", "softplus"):
        np.testing.assert_allclose(function(*args), getattr(sc, name)(*args), rtol=1e-14)
    agrees_everywhere(function, *args)


def test_plain_values_give_what_scipy_gives():
    np.testing.assert_array_equal(special.logsumexp(X, axis=0), sc.logsumexp(X, axis=0))
    np.testing.assert_array_equal(special.softmax(X, axis=0), sc.softmax(X, axis=0))
    np.testing.assert_array_equal(special.polygamma(1, np.abs(X)), sc.polygamma(1, np.abs(X)))
    np.testing.assert_array_equal(special.zeta(2.0, np.abs(X)), sc.zeta(2.0, np.abs(X)))
    assert special.zeta(2.0) == sc.zeta(2.0)
    assert special.multigammaln(3.5, 2) == sc.multigammaln(3.5, 2)


def test_the_gradient_of_logsumexp_is_the_softmax_whatever_the_size():
    x = np.array([1000.0, 1001.0, -1000.0])
    np.testing.assert_allclose(pb.grad(special.logsumexp)(x), sc.softmax(x))
    np.testing.assert_allclose(pb.grad(lambda x: special.logsumexp(np.stack([x, -np.inf])))(2.0), 1.0)


def test_signs_and_complex_values():
    assert pb.vjp(lambda x: special.logsumexp(x, b=-1.0, return_sign=True)[1] + 0 * np.sum(x), X)[0] == -1
    z = normal(3) + 1j * normal(3)
    np.testing.assert_allclose(pb.vjp(special.logsumexp, z)[0], np.log(np.sum(np.exp(z))))
    pb.testing.check_grads(lambda re, im: np.real(special.logsumexp(re + 1j * im)), [z.real, z.imag])


def test_lists_of_traced_values():
    np.testing.assert_allclose(pb.grad(lambda x: special.logsumexp([x, 2 * x]))(0.5), 1 + sc.expit(0.5))


def test_what_has_no_derivative_is_refused():
    with pytest.raises(TracingError, match="order"):
        pb.grad(lambda n: special.polygamma(n, 1.5))(1.0)
    with pytest.raises(NoRuleError, match="by q"):
        pb.grad(special.zeta)(2.0)
    with pytest.raises(NoRuleError, match="return_sign"):
        pb.grad(lambda z: np.real(special.logsumexp(z, return_sign=True)[0]))(np.ones(2, complex))
