"""stop_gradient, cut and uncut."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import pullback as pb

X = np.arange(1.0, 4.0)


@dataclass
class Model:
    w: object
    b: object


def test_stop_gradient_keeps_the_value_and_drops_the_derivative():
    value, gradient = pb.value_and_grad(lambda x: np.sum(pb.stop_gradient(x) * x))(X)
    assert value == np.sum(X * X)
    np.testing.assert_array_equal(gradient, X)
    assert pb.jvp(lambda x: np.sum(pb.stop_gradient(x) * x), (X,), (X,))[1] == np.sum(X * X)


def test_stop_gradient_takes_trees_and_constants():
    stopped = pb.stop_gradient({"a": X, "b": (1.0, None)})
    assert stopped["a"] is X
    assert stopped["b"] == (1.0, None)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_stop_gradient_in_every_tier(tier):
    plan = pb.compile(pb.grad(lambda x: np.sum(pb.stop_gradient(np.exp(x)) * x)), tier=tier)
    np.testing.assert_allclose(plan(X), np.exp(X))


@pytest.mark.parametrize("tier", pb.TIERS)
def test_gradients_by_a_cut_container_exist_for_what_is_uncut_alone(tier):
    model = pb.cut(Model(pb.uncut(X), {"deep": [pb.uncut(2 * X), 3 * X]}))

    def loss(model):
        return np.sum(model.w * model.b["deep"][0] * model.b["deep"][1])

    with pb.tier(tier):
        gradient = pb.grad(loss)(model)
    np.testing.assert_allclose(gradient.w, 6 * X * X)
    np.testing.assert_allclose(gradient.b["deep"][0], 3 * X * X)
    assert gradient.b["deep"][1] is None


def test_a_cut_container_has_no_gradient_at_all():
    gradient = pb.grad(lambda p: np.sum(p["constant"].w * p["x"]))({"constant": pb.cut(Model(X, X)), "x": X})
    assert gradient["constant"] == Model(None, None)
    np.testing.assert_array_equal(gradient["x"], X)


def test_inside_a_function_cut_and_uncut_are_inverse():
    gradient = pb.grad(lambda model: np.sum(pb.cut(model).w * pb.uncut(pb.cut(model)).w))(Model(X, X))
    np.testing.assert_array_equal(gradient.w, X)


def test_cutting_an_array_is_stop_gradient():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(pb.cut(x) * x))(X), X)


def test_a_cut_container_reads_like_the_container():
    class Layer:
        weights = X

        def __call__(self, x):
            return self.weights * x

    layer = pb.cut(Layer())
    np.testing.assert_array_equal(layer(2.0), 2 * X)
    np.testing.assert_array_equal(layer.weights, X)
    first, second = pb.cut([X, [2 * X]])
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second[0], 2 * X)
    assert len(pb.cut([1, 2])) == 2


def test_a_cut_container_cannot_be_written_to():
    with pytest.raises(AttributeError, match="constant; set w on the container itself"):
        pb.cut(Model(X, X)).w = 2 * X


def test_a_cut_container_is_copied_and_pickled():
    model = pb.cut(Model(pb.uncut(X), X))
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301 (our own bytes)
        np.testing.assert_array_equal(copied.w, X)
        np.testing.assert_array_equal(pb.grad(lambda m: np.sum(m.w * m.b))(copied).w, X)
