"""vmap: one run for a batch gives what one run per example gives."""

import numpy as np
import pytest

import pullback as pb
from pullback import rules
from pullback.core.cases import ALL
from pullback.errors import TracingError
from pullback.transforms import elementwise_maps

assert rules
assert elementwise_maps
RNG = np.random.default_rng(0)
XS = RNG.normal(size=(5, 3))


def example(x):
    return np.sum(np.sin(x) * x[::-1] ** 2)


def test_a_batch_gives_what_its_examples_give():
    np.testing.assert_allclose(pb.vmap(example)(XS), [example(x) for x in XS])


def test_gradients_of_a_batch_are_the_gradients_of_its_examples():
    np.testing.assert_allclose(pb.vmap(pb.grad(example))(XS), [pb.grad(example)(x) for x in XS])


def test_the_gradient_of_a_batch_flows_through():
    gradient = pb.grad(lambda xs: np.sum(pb.vmap(example)(xs) ** 2))(XS)
    np.testing.assert_allclose(gradient, [2 * example(x) * pb.grad(example)(x) for x in XS])


@pytest.mark.parametrize("tier", ["fused"])
def test_a_batch_can_be_compiled(tier):
    plan = pb.compile(pb.vmap(example), tier=tier)
    for _ in range(2):
        np.testing.assert_allclose(plan(XS), [example(x) for x in XS])
    assert plan.summary()["fallbacks"] == []


def projected(parameters):
    """A point turned and projected: it takes parts of its argument, whose cotangents are written into parts."""
    turn, point, scale = parameters[:3], parameters[3:6], parameters[6]
    y = point + np.cross(turn, point)
    return scale * y[:2] / y[2]


def pooled(image):
    return pb.nn.max_pool(image[None, None], 2, stride=1)[0, 0]


@pytest.mark.parametrize(("function", "shape"), [(projected, (7,)), (pooled, (3, 4))])
def test_the_jacobians_of_many_examples_are_no_more_steps_than_those_of_few(function, shape):
    plan = pb.compile(pb.vmap(pb.jacobian(function)), tier="fused")
    kernels = set()
    for count in (2, 400):
        xs = RNG.normal(size=(count, *shape))
        ours = plan(xs)
        np.testing.assert_allclose(ours[:2], [pb.jacobian(function)(x) for x in xs[:2]], atol=1e-12)
        assert plan.summary()["fallbacks"] == []
        kernels.add(plan.summary()["kernels"])
    assert len(kernels) == 1


@pytest.mark.parametrize("tier", ["fused", "native"])
def test_what_goes_example_by_example_is_not_compiled_for_many(tier):
    def places(x):
        return np.sum(x) * np.searchsorted(np.sort(x), 0.5)

    plan = pb.compile(pb.vmap(places), tier=tier)
    plan(XS)
    assert plan.summary()["kernels"] is not None  # few are
    many = RNG.normal(size=(300, 3))
    np.testing.assert_allclose(plan(many), [places(x) for x in many])
    (reason,) = plan.summary()["fallbacks"]
    assert reason.startswith("searchsorted is applied to one example of a batch after the other, and 300 of them")


def test_batches_nest():
    xs = RNG.normal(size=(2, 4, 3))
    np.testing.assert_allclose(pb.vmap(pb.vmap(example))(xs), [[example(x) for x in row] for row in xs])
    outer = pb.vmap(lambda a: pb.vmap(lambda b: a * b, in_axes=0)(XS[0]))(XS[1])
    np.testing.assert_allclose(outer, np.multiply.outer(XS[1], XS[0]))


def test_axes_are_chosen_per_argument_and_for_the_result():
    w = RNG.normal(size=(2, 3))
    product = pb.vmap(lambda w, x: w @ x, in_axes=(None, 1), out_axes=1)(w, XS.T)
    np.testing.assert_allclose(product, w @ XS.T)


def test_trees_are_mapped_leaf_by_leaf():
    result = pb.vmap(lambda p, s: {"sum": p["a"] + s * p["b"][0], "shared": s})(
        {"a": XS, "b": [XS[:, 0]]}, 2.0 * XS[:, 1]
    )
    np.testing.assert_allclose(result["sum"], XS + 2 * XS[:, 1:2] * XS[:, :1])
    np.testing.assert_allclose(result["shared"], 2 * XS[:, 1])


def test_what_the_examples_share_is_repeated_and_writeable():
    shared = pb.vmap(lambda x: 3.0)(XS)
    np.testing.assert_array_equal(shared, np.full(5, 3.0))
    shared[0] = 1.0
    np.testing.assert_array_equal(shared, [1.0, 3.0, 3.0, 3.0, 3.0])


def test_an_empty_batch_has_an_empty_result():
    assert pb.vmap(example)(np.zeros((0, 3))).shape == (0,)


def test_keyword_arguments_are_mapped_along_their_first_axis():
    np.testing.assert_allclose(pb.vmap(lambda x, *, y: x @ y)(XS, y=XS), np.sum(XS**2, axis=1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.vmap(example)(XS[:0, 0][0:0].sum()), "has no axis 0"),
        (lambda: pb.vmap(lambda a, b: a)(XS, XS.T), "5 and 3 examples"),
        (lambda: pb.vmap(lambda a, b: a, in_axes=(0,))(XS, XS), "1 entries for 2 arguments"),
        (lambda: pb.vmap(example, in_axes=None)(XS), "no argument has examples"),
        (lambda: pb.vmap(lambda x: x if x[0] > 0 else -x)(XS), "numpy.where or pb.cond"),
        (lambda: pb.vmap(lambda x: "text")(XS), "returned a str"),
    ],
)
def test_bad_use_is_one_sentence(call, message):
    with pytest.raises(TracingError, match=message):
        call()


def _name(case):
    return f"{case.primitive.name}({','.join('x'.join(map(str, x.shape)) for x in case.operands())})"


@pytest.mark.parametrize("case", ALL, ids=_name)
def test_every_rule_works_on_batches(case):
    """All operands batched, then each alone, against one application per example; then its derivatives."""
    seeds = range(3)
    examples = [case.operands(seed) for seed in seeds]
    params = dict(case.params)

    def apply(*operands):
        return case.primitive(*operands, **params)

    count = len(case.draws)
    for chosen in {tuple(range(count)), *((position,) for position in range(count))}:
        operands = [
            np.stack([example[position] for example in examples]) if position in chosen else examples[0][position]
            for position in range(count)
        ]
        rows = [
            [e[position] if position in chosen else examples[0][position] for position in range(count)]
            for e in examples
        ]
        axes = tuple(0 if position in chosen else None for position in range(count))
        batched = pb.vmap(lambda *xs: apply(*xs), in_axes=axes)(*operands)
        expected = [apply(*row) for row in rows]
        for ours, theirs in zip(
            batched if case.primitive.results > 1 else (batched,),
            map(np.stack, zip(*expected, strict=True)) if case.primitive.results > 1 else (np.stack(expected),),
            strict=True,
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
