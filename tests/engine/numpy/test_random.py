"""Draws whose locations and scales are traced."""

import numpy as np
import pytest

import pullback as pb

PARAMETERS = {
    "normal": (0.3, 1.7),
    "uniform": (-0.5, 2.0),
    "exponential": (1.3,),
    "lognormal": (0.1, 0.6),
    "laplace": (0.2, 0.9),
    "logistic": (0.2, 0.9),
    "gumbel": (0.2, 0.9),
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("size", [None, 5, (2, 3)])
def test_a_draw_is_numpys_and_moves_with_its_parameters(name, size):
    def draw(*parameters):
        return getattr(pb.numpy.random.default_rng(7), name)(*parameters, size=size)

    parameters = PARAMETERS[name]
    expected = getattr(np.random.default_rng(7), name)(*parameters, size=size)
    assert np.array_equal(draw(*parameters), expected)
    value, _ = pb.vjp(draw, *parameters)
    assert np.shape(value) == np.shape(expected)
    assert np.allclose(value, expected, rtol=1e-14)
    pb.testing.check_grads(draw, list(parameters))


def test_arrays_of_parameters_give_the_shape_of_the_draw():
    def draw(loc, scale):
        return pb.numpy.random.default_rng(1).normal(loc, scale)

    loc, scale = np.zeros((2, 1)), np.ones(3)
    assert np.allclose(pb.vjp(draw, loc, scale)[0], np.random.default_rng(1).normal(loc, scale))
    pb.testing.check_grads(draw, [loc, scale])


@pytest.mark.parametrize("generator", [pb.numpy.random.default_rng(3), np.random.default_rng(3)])
def test_a_plan_does_not_keep_the_numbers_that_it_saw_first(generator):
    plan = pb.compile(lambda loc: np.sum(loc + generator.normal(0.0, 1.0, size=4)))
    assert plan(0.0) != plan(0.0)
    assert "draws random numbers" in plan.summary()["fallbacks"][0] or "Generator" in plan.summary()["fallbacks"][0]


def test_everything_else_is_numpys():
    assert pb.numpy.random.PCG64 is np.random.PCG64
    assert isinstance(pb.numpy.random.default_rng(), np.random.Generator)
