"""Branches and loops of which the examples of a batch go different ways: each is as if it were alone.

Every function here is infinite, NaN or an error for examples that do not take the branch, with NumPy's warnings as errors.
"""

import numpy as np
import pytest

import pullback as pb

X = np.array([0.0, 1.0, -1.0, 4.0])
NONE_TAKES = -np.abs(X)
W = np.array(2.0)
MATRICES = np.array([np.eye(2), np.zeros((2, 2)), -np.eye(2), 2 * np.eye(2)])


def guarded_log(x):
    return pb.cond(x > 0, np.log, lambda x: 0.0 * x, x)


def rooted(x):
    return pb.cond(x > 0, np.sqrt, lambda x: 3 * x, x)


def nested(x):
    return pb.cond(x > 0, lambda x: pb.cond(x > 2, lambda x: np.arccosh(x), lambda x: np.log(x) ** 2, x), np.square, x)


def chosen(x):
    which = (x > 0) * 1 + (x > 2) * 1
    return pb.switch(which, [lambda x: x * W, lambda x: np.sqrt(x) / x, lambda x: np.arccosh(x)], x)


def scanned(x):
    def step(h, k):
        return pb.cond(h > 0.5, lambda h: np.log(h) + k, lambda h: h * 0.3 + 1.0, h), h

    h, all_h = pb.scan(step, x, np.arange(1.0, 4.0))
    return h + np.sum(all_h)


def factored(m):
    return pb.cond(
        m[0, 0] > 0,
        lambda m: np.sum(np.linalg.cholesky(m)),
        lambda m: np.sum(m * np.array([[1.0, 2.0], [3.0, 4.0]])),
        m,
    )


def inverted(m):
    return pb.cond(m[0, 0] != 0, lambda m: np.sum(np.linalg.inv(m)), np.sum, m)


FUNCTIONS = {
    guarded_log: (X, NONE_TAKES),
    rooted: (X, NONE_TAKES),
    nested: (X, NONE_TAKES),
    chosen: (X, NONE_TAKES),
    scanned: (X, NONE_TAKES),
    factored: (MATRICES, -np.abs(MATRICES)),
    inverted: (MATRICES, 0 * MATRICES),
}


@pytest.fixture(autouse=True)
def _strict():
    with np.errstate(all="raise", under="ignore"):
        yield


def one_by_one(transformed, batch):
    return np.stack([transformed(np.array(x)) for x in batch])


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_branch_that_is_not_taken_reaches_neither_values_nor_gradients(function, tier):
    together = {
        "value": (pb.vmap(function), function),
        "grad of vmap": (pb.grad(lambda x: np.sum(pb.vmap(function)(x))), pb.grad(function)),
        "vmap of grad": (pb.vmap(pb.grad(function)), pb.grad(function)),
        "jvp": (
            lambda x: pb.jvp(pb.vmap(function), (x,), (np.ones_like(x),))[1],
            lambda x: pb.jvp(function, (x,), (np.ones_like(x),))[1],
        ),
        "second": (
            pb.grad(lambda x: np.sum(pb.grad(lambda x: np.sum(pb.vmap(function)(x)))(x) ** 2)),
            pb.grad(lambda x: np.sum(pb.grad(function)(x) ** 2)),
        ),
    }
    for name, (batched, alone) in together.items():
        plan = pb.compile(batched, tier=tier)
        for batch in FUNCTIONS[function]:
            np.testing.assert_allclose(plan(batch), one_by_one(alone, batch), rtol=1e-12, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("batch", [X, NONE_TAKES], ids=["some", "none"])
def test_what_the_examples_share_has_the_gradient_of_those_that_use_it(batch, tier):
    def function(w, x):
        return np.sum(pb.vmap(lambda x: pb.cond(x > 0, lambda x: w * np.log(x), lambda x: x / w, x))(x))

    alone = sum(np.log(x) if x > 0 else -x / W**2 for x in batch)
    np.testing.assert_allclose(pb.compile(pb.grad(function), tier=tier)(W, batch), alone)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_a_loop_in_a_branch_that_nobody_takes_is_not_run(tier):
    def doubled(x):
        return pb.cond(x > 0, lambda x: pb.while_loop(lambda y: y < 8.0, lambda y: 2 * y, x), lambda x: x, x)

    plan = pb.compile(pb.vmap(doubled), tier=tier)
    np.testing.assert_array_equal(plan(NONE_TAKES), NONE_TAKES)
    np.testing.assert_array_equal(plan(X), [0, 8, -1, 8])


@pytest.mark.parametrize("tier", pb.TIERS)
def test_examples_that_are_done_with_a_loop_no_longer_run_its_body(tier):
    def lowered(x):
        """Square roots of what goes below zero after the last step."""
        return pb.while_loop(lambda y: y >= 1.0, lambda y: np.sqrt(y - 1.0), x)

    batch = np.array([0.5, 27.0, 2.5, 1.2])
    plan = pb.compile(lambda x: pb.jvp(pb.vmap(lowered), (x,), (np.ones(4),)), tier=tier)
    expected = [pb.jvp(lowered, (x,), (np.array(1.0),)) for x in batch]
    np.testing.assert_allclose(plan(batch), np.transpose(expected))


@pytest.mark.parametrize("tier", pb.TIERS)
def test_a_batch_of_indices_with_one_out_of_range_is_refused(tier):
    def function(which, x):
        return pb.vmap(lambda which, x: pb.switch(which, [np.sin, np.cos, np.exp], x))(which, x)

    plan = pb.compile(function, tier=tier)
    np.testing.assert_allclose(plan(np.array([0, 1, 2, 1]), X), [0, np.cos(1), np.exp(-1), np.cos(4)])
    for bad in (3, -1):
        with pytest.raises(pb.errors.ControlFlowError, match=f"index is {bad}, there are 3 branches"):
            plan(np.array([0, bad, 2, 1]), X)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_a_batch_of_no_examples_gives_none(tier):
    for function in (nested, chosen, lambda x: pb.while_loop(lambda y: y < 8.0, lambda y: 2 * y, x)):
        assert pb.compile(pb.vmap(function), tier=tier)(np.zeros(0)).shape == (0,)
