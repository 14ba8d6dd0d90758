"""A mask of what a pooling spreads becomes a mask of what there is to spread."""

import numpy as np
import pytest

import pullback as pb

rng = np.random.default_rng(3)
X = rng.normal(size=(2, 3, 6, 8))
W = rng.normal(size=(2, 3, 3, 4))


def loss(window, stride=None, pad=0, act=pb.nn.relu):
    return lambda x: np.sum(pb.nn.max_pool(act(x), window, stride=stride, pad=pad) ** 2)


def steps(function, *args):
    """The program's calls, in order."""
    plan = pb.compile(pb.grad(function), tier="fused")
    plan(*args)
    return plan.explain().rpartition("# program")[2]


def test_relu_before_a_pooling_masks_the_smaller_array():
    text = steps(loss(2), X)
    mask, spread = text.index("greater("), text.index("max_spread(")
    assert mask < spread
    assert text.count("greater(") == 1
    assert "write_where" not in text[spread:]


@pytest.mark.parametrize(
    "options",
    [
        {"window": 2},
        {"window": (3, 2), "stride": (2, 1)},
        {"window": 2, "stride": 3},
        {"window": 3, "stride": 2, "pad": 1},
        {"window": (5, 3)},
    ],
)
@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
def test_the_gradient_is_that_of_the_unfused_tier_bit_for_bit(options, tier):
    x = X.copy()
    x[0, 0, 0, 0], x[0, 1, 3, 3], x[1, 2, 5, 7] = np.nan, np.inf, -np.inf
    x[1, 0] = np.maximum(x[1, 0], 0)  # zeros tie
    with np.errstate(invalid="ignore"):
        expected = pb.grad(loss(**options))(x)
        plan = pb.compile(pb.grad(loss(**options)), tier=tier)
        for _ in range(2):
            np.testing.assert_array_equal(plan(x), expected)


def test_another_mask_stays_where_it_is():
    def masked_by_another(x):
        y = pb.nn.max_pool(x, 2)
        return np.sum(y**2)

    mask = rng.normal(size=X.shape)
    text = steps(lambda x: masked_by_another(np.where(mask > 0, x, 0)), X)
    assert text.index("max_spread(") < text.index("where(", text.index("max_spread("))


def test_what_is_spread_and_read_elsewhere_is_not_spread_twice():
    def both(x):
        relu = pb.nn.relu(x)
        return np.sum(pb.nn.max_pool(relu, 2) ** 2) + np.sum(relu**3)

    assert steps(both, X).count("max_spread(") == 1
