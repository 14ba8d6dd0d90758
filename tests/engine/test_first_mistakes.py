"""What people try first and cannot have: one sentence with what, where, and the remedy."""

import re
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import pullback as pb
from pullback.errors import DifferentiationError, PlanWarning, TracingError

X = np.array([1.0, 2.0, 3.0])


def test_a_traced_value_can_be_printed_but_not_formatted_as_a_number():
    assert pb.grad(lambda x: (f"{x}" == "<traced float64[3]>") * np.sum(x))(X)[0] == 1.0
    with pytest.raises(TracingError, match=r"cannot be formatted as '\.3f'.*has_aux"):
        pb.grad(lambda x: (f"{np.sum(x):.3f}", np.sum(x))[1])(X)


def test_jvp_of_bare_arrays_is_told_to_take_tuples():
    with pytest.raises(DifferentiationError, match=r"jvp\(f, \(x,\), \(dx,\)\)"):
        pb.jvp(np.sin, X, X)


def test_a_layer_names_itself_and_the_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"dense_bias_act: w of shape \(3, 4\) takes 4 inputs, x has 5"):
        pb.nn.dense_bias_act(np.ones((3, 4)), np.ones((5, 2)))


def test_a_map_with_the_wrong_parameters_is_refused_when_it_is_given():
    @pb.primitive
    def scaled(x, rate):
        return x * rate

    with pytest.raises(
        TypeError, match=r"scaled: the map by x takes 4 values by position.*\(x, rate\); this one takes 1"
    ):
        scaled.pulls(x=lambda y_bar: y_bar)
    scaled.pulls(x=lambda y_bar, *rest: y_bar * rest[-1], rate=None)
    assert pb.grad(scaled)(1.0, 3.0) == 3.0


def test_what_is_no_function_is_refused_at_once():
    with pytest.raises(DifferentiationError, match="compile takes a function, not float"):
        pb.compile(3.0)


@dataclass
class Model:
    w: object
    activation: object = "tanh"


def loss(model, x, mode="train"):
    return np.sum(getattr(np, model.activation)(model.w * x)) * (2.0 if mode == "train" else 1.0)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_strings_are_part_of_the_structure_and_a_plan_is_recorded_for_each(tier):
    plan = pb.compile(pb.value_and_grad(loss), tier=tier)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for activation, mode in [("tanh", "train"), ("sin", "train"), ("tanh", "eval"), ("tanh", "train")]:
            value, gradient = plan(Model(X, activation), X, mode)
            slope = np.cos(X * X) if activation == "sin" else 1 - np.tanh(X * X) ** 2
            factor = 2.0 if mode == "train" else 1.0
            np.testing.assert_allclose(value, factor * np.sum(getattr(np, activation)(X * X)))
            np.testing.assert_allclose(gradient.w, factor * slope * X)
            assert gradient.activation == activation
    if tier != "unfused":
        assert plan.summary()["recordings"] == {"the first call": 3}


def test_calls_with_strings_are_native():
    plan = pb.compile(pb.value_and_grad(loss))
    for _ in range(3):
        plan(Model(X), X, "train")
    assert "calls are native" in plan.explain()


@pytest.mark.parametrize("compiled", [lambda f: f, pb.compile], ids=["tape", "plan"])
def test_a_leaf_without_a_derivative_is_named(compiled):
    with pytest.raises(DifferentiationError, match=r"by an argument of dtype int64 \(at \.activation\); .*pb\.cut\("):
        compiled(pb.grad(loss))(Model(X, 3), X)
    with pytest.raises(
        DifferentiationError, match=r"cannot be differentiated by a str; make it an argument of its own"
    ):
        compiled(pb.grad(lambda mode: 1.0))("train")


@pytest.mark.parametrize("outer", [pb.grad, pb.vmap])
def test_a_plan_that_is_differentiated_or_batched_from_outside_says_what_to_compile(outer):
    with pytest.warns(
        PlanWarning, match=r"from outside; compile what is called outermost: pb\.compile\(pb\.grad\(f\)\)"
    ):
        outer(pb.compile(lambda x: np.sum(x * x)))(np.ones((2, 3)))


def test_a_plan_called_in_a_plan_is_a_part_of_it_without_a_warning():
    inner = pb.compile(np.tanh)
    outer = pb.compile(pb.grad(lambda x: np.sum(inner(x) * inner(2 * x))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outer(X)
    assert outer.summary()["fallbacks"] == []


def test_compile_is_a_decorator_with_options():
    @pb.compile(tier="fused")
    def doubled(x):
        return 2 * x

    assert doubled.tier == "fused"
    assert doubled(X).tolist() == [2.0, 4.0, 6.0]


def test_errors_about_stores_and_batches_name_the_line():
    def stored(x):
        x[0] = 1.0
        return np.sum(x)

    with pytest.raises(
        TracingError, match=r"test_first_mistakes\.py, line \d+, in stored: `x\[0\]`: a store into an argument"
    ):
        pb.grad(stored)(X)
    with pytest.raises(TracingError, match=r"in <lambda>: `x > 0`: control flow would depend"):
        pb.vmap(lambda x: x if x > 0 else -x)(X)


@pytest.mark.parametrize(
    ("function", "argument", "remedy"),
    [
        (lambda x: np.sum(stats.norm.logpdf(x)), X, "call pb.scipy.stats.norm.logpdf"),
        (lambda x: np.float64(x[0]), X, "leave numpy.float64() out"),
        (lambda x: np.sum(np.sin(x)), [1.0, 2.0], "numpy.stack(x) makes an array of it"),
        (lambda x: x.at[0].set(1.0), X, "pb.numpy.updated(x, i, v)"),
    ],
    ids=["distribution", "float64", "list", "at"],
)
def test_the_remedy_is_that_of_what_was_called(function, argument, remedy):
    with pytest.raises((TracingError, AttributeError), match=re.escape(remedy)):
        pb.grad(function)(argument)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_a_whole_number_of_more_than_64_bits_is_as_exact_as_on_the_tape(tier):
    plan = pb.compile(pb.grad(lambda w, n: np.sum(w * n) + np.sum(w ** (n - n + 2))), tier=tier)
    plan(X, 3)
    np.testing.assert_allclose(plan(X, 2**70), 2.0**70 + 2 * X)


def test_a_minimum_that_is_not_a_number_has_not_converged():
    with np.errstate(invalid="ignore"):
        found = pb.optim.minimize(lambda p: np.sum(np.log(p)), -np.ones(3))
    assert not found.converged
    assert found.message.startswith("the loss is nan")


class Layer:
    def __init__(self, w):
        self.w = w

    @pb.compile
    def scaled(self, x):
        return self.w * x

    @pb.compile(tier="stateful")
    def loss(self, x):
        return np.sum(np.tanh(self.scaled(x)))


def test_a_plan_in_a_class_is_a_method_that_sees_its_instance():
    layer, other = Layer(2.0), Layer(np.zeros(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for w in (2.0, 3.0, X):
            layer.w = w
            np.testing.assert_allclose(layer.loss(X), np.sum(np.tanh(w * X)))
            assert other.loss(X) == 0.0
        np.testing.assert_allclose(pb.compile(pb.grad(layer.loss))(X), (1 - np.tanh(X * X) ** 2) * X)
    assert layer.loss is layer.loss
    assert layer.loss.summary()["fallbacks"] == []


@pytest.mark.parametrize(
    ("function", "further", "said"),
    [
        (
            lambda x, seed: np.sum(x * np.random.default_rng(seed).normal(size=3)),
            7,
            "seeds a random .* pass the numbers",
        ),
        (
            lambda x, rng: np.sum(x * rng.normal(size=3)),
            np.random.default_rng(1),
            "is a Generator, which draws other .* pass the numbers",
        ),
        (lambda x, y: np.sum(x * y), X.astype(">f8"), r"of dtype >f8, .* pass x\.astype\('f8'\)"),
        (lambda x, _: np.sum(x * SWAPPED), 1.0, r"SWAPPED is an array of dtype >f8, .* SWAPPED\.astype\('f8'\)"),
        (lambda x, _: np.sum([1.0, 2.0, 3.0] - x), 1.0, r"operand of type list .* pb\.numpy\.array"),
        (lambda x, _: np.sum((1.0, 2.0, 3.0) * x), 1.0, r"operand of type tuple .* pb\.numpy\.array"),
    ],
)
def test_why_a_plan_runs_on_the_tape_is_said_with_the_mend(function, further, said):
    plan = pb.compile(pb.grad(function), tier="native")
    with pytest.warns(PlanWarning, match=said):
        plan(X, further)


SWAPPED = X.astype(">f8")


@pytest.mark.parametrize("tier", [None, *pb.TIERS])
def test_a_store_into_a_plain_array_names_the_line(tier):
    def adding(x):
        y = np.zeros(3)
        y += x
        return np.sum(y)

    def at(x):
        y = np.zeros(3)
        np.add.at(y, [0, 1, 1], x)
        return np.sum(y)

    def copying(x):
        y = np.zeros(3)
        np.copyto(y, x)
        return np.sum(y)

    for function, text in ((adding, r"y \+= x"), (at, r"np\.add\.at\(y, \[0, 1, 1\], x\)"), (copying, "np.copyto")):
        gradient = pb.grad(function)
        run = gradient if tier is None else pb.compile(gradient, tier=tier)
        with pytest.raises(TracingError, match=rf"line \d+, in {function.__name__}: `.*pb\.numpy\.zeros") as caught:
            run(X)
        assert re.search(text, str(caught.value))


def test_hvp_takes_further_arguments_of_the_function():
    def f(x, scale, offset):
        return np.sum(x**3 * scale + offset)

    np.testing.assert_allclose(pb.hvp(f, X, np.ones(3), 2.0, X), 12.0 * X)
    np.testing.assert_allclose(pb.compile(lambda x: pb.hvp(f, x, np.ones(3), 2.0, X))(X), 12.0 * X)
