"""check_grads finds what is wrong, names it, and lets right things pass: in every mode, order, dtype and kind of tree."""

import numpy as np
import pytest

import pullback as pb
from pullback.compat.autograd.extend import defjvp, defvjp, primitive

X = np.array([0.3, -0.7, 1.1])


def _square(reverse=2.0, forward=2.0, second=1.0):
    """x**2 whose derivatives are multiplied by what is wrong; `second` only shows when differentiated once more."""

    @primitive
    def square(x):
        return x * x

    @primitive
    def once(g):
        return g * 1.0

    defvjp(once, lambda ans, g: lambda h: second * h)
    defjvp(once, lambda h, ans, g: second * h)
    defvjp(square, lambda ans, x: lambda g: reverse * once(x) * g)
    defjvp(square, lambda g, ans, x: forward * once(x) * g)
    return square


def test_right_derivatives_pass_in_all_mixes_of_modes():
    pb.testing.check_grads(_square(), (X,), order=3)


def test_a_wrong_reverse_mode_is_found_and_forward_is_its_judge():
    with pytest.raises(AssertionError, match=r"reverse mode of square, by argument 0, gives .*, forward mode gives"):
        pb.testing.check_grads(_square(reverse=2.001), (X,))
    with pytest.raises(AssertionError, match="differences give"):
        pb.testing.check_grads(_square(reverse=2.001), (X,), modes=("rev",))
    pb.testing.check_grads(_square(reverse=2.001), (X,), order=1, modes=("fwd",))


def test_a_wrong_forward_mode_is_found():
    with pytest.raises(AssertionError, match="forward mode of square, by argument 0"):
        pb.testing.check_grads(_square(forward=2.001), (X,))


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_an_error_of_the_second_order_only_is_found_at_that_order(mode):
    faulty = _square(second=1.01)
    pb.testing.check_grads(faulty, (X,), order=1, modes=(mode,))
    name = {"fwd": "forward mode of forward mode of square", "rev": "reverse mode of reverse mode of square"}[mode]
    with pytest.raises(AssertionError, match=name):
        pb.testing.check_grads(faulty, (X,), order=2, modes=(mode,))


def test_the_argument_that_is_wrong_is_named_within_its_tree():
    @primitive
    def product(x, y):
        return x * y

    defvjp(product, lambda ans, x, y: lambda g: g * y, lambda ans, x, y: lambda g: g * x * 1.1)
    defjvp(product, lambda g, ans, x, y: g * y, lambda g, ans, x, y: g * x)
    with pytest.raises(AssertionError, match=r"by argument 1\['w'\]\[0\]"):
        pb.testing.check_grads(lambda x, p: product(x, p["w"][0]) + p["b"], (X, {"b": 1.0, "w": [X + 2]}))


def test_trees_in_and_out_and_arguments_that_are_held():
    def function(p, n, name):
        assert name == "text"
        return {"a": p[0] ** n, "b": (np.sin(p[1]), n)}

    pb.testing.check_grads(function, ((X, 2.0), 3, "text"))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_tolerances_follow_the_dtype(dtype):
    pb.testing.check_grads(lambda x: np.tanh(x) * x, (X.astype(dtype),))
    with pytest.raises(AssertionError):
        pb.testing.check_grads(lambda x: np.tanh(_square(reverse=2.5)(x)), (X.astype(dtype),))


def test_complex_arguments_and_results():
    z = X + 1j * X[::-1]
    pb.testing.check_grads(lambda z: np.exp(z) * z, (z,))
    pb.testing.check_grads(lambda z, x: z * x, (z, X))
    pb.testing.check_grads(lambda z: np.abs(z) ** 2 + np.real(z), (z,))


def test_a_conjugated_derivative_is_found():
    z = X + 1j * X[::-1]
    square = primitive(lambda z: z * z)
    defvjp(square, lambda ans, z: lambda g: 2 * g * np.array([v.conjugate() for v in z]))
    defjvp(square, lambda g, ans, z: 2 * g * z)
    with pytest.raises(AssertionError, match="reverse mode"):
        pb.testing.check_grads(square, (z,), order=1)


def test_a_nan_is_close_to_nothing():
    with pytest.raises(AssertionError, match="nan"):
        pb.testing.check_grads(_square(reverse=float("nan")), (X,), order=1)


def test_a_function_that_writes_to_its_argument_is_told_so():
    def writes(x, scratch):
        scratch[0] += 1.0
        return x * 2.0

    with pytest.raises(AssertionError, match="argument 1 was written to"):
        pb.testing.check_grads(lambda x, n: writes(x, n), (X, np.array([1])), order=1)


def test_bad_questions_are_answered_in_a_sentence():
    with pytest.raises(ValueError, match='"fwd" and "rev"'):
        pb.testing.check_grads(np.sin, (X,), modes=("forward",))
    with pytest.raises(ValueError, match="order=0"):
        pb.testing.check_grads(np.sin, (X,), order=0)
    with pytest.raises(TypeError, match=r"write \(x,\)"):
        pb.testing.check_grads(np.sin, X)
    with pytest.raises(ValueError, match="nothing to move"):
        pb.testing.check_grads(lambda n: n, (3,))
    with pytest.raises(ValueError, match="returns nothing"):
        pb.testing.check_grads(lambda x: "text", (X,))
