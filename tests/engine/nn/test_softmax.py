"""softmax and the cross-entropy of logits against their textbook patterns."""

import numpy as np
import pytest

import pullback as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5))
PATTERNS = {
    "softmax": lambda x, axis: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True),
    "logsoftmax": lambda x, axis: x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True)),
    "logsumexp": lambda x, axis: np.log(np.sum(np.exp(x), axis=axis)),
}


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("tier", pb.TIERS)
def test_rules_are_their_patterns_to_the_second_order(name, axis, tier):
    weights = RNG.normal(size=np.shape(PATTERNS[name](X, axis)))

    def norm(function):
        loss = lambda x: np.sum(weights * function(x, axis=axis) ** 2)  # noqa: E731
        return lambda x: np.sum(pb.grad(loss)(x) ** 2)

    rule = getattr(pb.nn, name)
    with pb.tier(tier):
        np.testing.assert_allclose(rule(X, axis=axis), PATTERNS[name](X, axis), rtol=1e-12)
        for order in (lambda f: lambda x: np.sum(weights * f(x, axis=axis)), norm):
            value, gradient = pb.value_and_grad(order(rule))(X)
            expected_value, expected = pb.value_and_grad(order(PATTERNS[name]))(X)
            np.testing.assert_allclose(value, expected_value, rtol=1e-11)
            np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("reduce", ["mean", "sum", "none"])
def test_cross_entropy_is_its_pattern(tier, reduce):
    targets = RNG.dirichlet(np.ones(4), size=5).T

    def pattern(x, t):
        losses = -np.sum(t * PATTERNS["logsoftmax"](x, 0), axis=0)
        return losses if reduce == "none" else np.mean(losses) if reduce == "mean" else np.sum(losses)

    def rule(x, t):
        return pb.nn.logitcrossentropy(x, t, axis=0, reduce=reduce)

    with pb.tier(tier):
        y, pullback = pb.vjp(rule, X, targets)
        expected_y, expected = pb.vjp(pattern, X, targets)
        np.testing.assert_allclose(y, expected_y, rtol=1e-12)
        for ours, theirs in zip(pullback(np.ones_like(y)), expected(np.ones_like(y)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-13)


def test_class_numbers_are_targets_too():
    labels = np.array([0, 3, 1, 1, 2])
    one_hot = np.eye(4)[:, labels]
    np.testing.assert_allclose(
        pb.nn.logitcrossentropy(X, labels, axis=0), pb.nn.logitcrossentropy(X, one_hot, axis=0), rtol=1e-15
    )
    gradient = pb.grad(lambda x: pb.nn.logitcrossentropy(x, labels, axis=0))(X)
    np.testing.assert_allclose(gradient, (PATTERNS["softmax"](X, 0) - one_hot) / 5, rtol=1e-12)


@pytest.mark.parametrize(
    ("x", "softmax", "logsumexp"),
    [
        ([1000.0, 1000.0], [0.5, 0.5], 1000 + np.log(2)),
        ([-1000.0, -1001.0], [1 / (1 + np.exp(-1)), 1 - 1 / (1 + np.exp(-1))], -1000 + np.log1p(np.exp(-1))),
        ([-np.inf, 0.0], [0, 1], 0),
        ([-np.inf, -np.inf], None, -np.inf),
        ([np.nan, 0.0], [np.nan, np.nan], np.nan),
    ],
)
def test_extremes_do_not_overflow(x, softmax, logsumexp):
    x = np.array(x)
    np.testing.assert_allclose(pb.nn.logsumexp(x, axis=0), logsumexp, rtol=1e-14)
    if softmax is not None:
        np.testing.assert_allclose(pb.nn.softmax(x, axis=0), softmax, rtol=1e-12)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_a_target_of_0_at_a_logit_of_minus_infinity_counts_0(tier):
    x = np.array([[-np.inf], [0.0], [1.0]])
    with pb.tier(tier):
        loss, gradient = pb.value_and_grad(lambda x: pb.nn.logitcrossentropy(x, np.array([2]), axis=0))(x)
    np.testing.assert_allclose(loss, np.log1p(np.exp(-1)))
    np.testing.assert_allclose(gradient[0], 0)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_a_target_of_0_has_its_gradient(tier):
    with pb.tier(tier):
        gradient = pb.grad(lambda t: pb.nn.logitcrossentropy(X, t, axis=0, reduce="sum"))(np.zeros_like(X))
    np.testing.assert_allclose(gradient, -PATTERNS["logsoftmax"](X, 0), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_precision_is_kept(dtype):
    x = X.astype(dtype)
    for name in PATTERNS:
        y, pullback = pb.vjp(lambda x, name=name: getattr(pb.nn, name)(x, axis=0), x)
        assert y.dtype == dtype
        assert pullback(np.ones_like(y))[0].dtype == dtype
    loss, gradient = pb.value_and_grad(lambda x: pb.nn.logitcrossentropy(x, np.zeros(5, int), axis=0))(x)
    assert (loss.dtype, gradient.dtype) == (dtype, dtype)
    assert pb.nn.softmax(np.arange(3), axis=0).dtype == np.float64


def test_batches_move_the_axis():
    x = RNG.normal(size=(3, 4, 5))
    for name in PATTERNS:
        function = lambda x, name=name: getattr(pb.nn, name)(x, axis=1)  # noqa: E731
        np.testing.assert_allclose(pb.vmap(function)(x), np.stack([function(row) for row in x]), rtol=1e-14)
    labels = RNG.integers(0, 4, size=(3, 5))
    losses = pb.vmap(lambda x, t: pb.nn.logitcrossentropy(x, t, axis=0))(x, np.eye(4)[:, labels].transpose(1, 0, 2))
    np.testing.assert_allclose(losses, [pb.nn.logitcrossentropy(x[i], labels[i], axis=0) for i in range(3)])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pb.nn.softmax(X, axis=2), ValueError, "has no axis 2"),
        (lambda: pb.nn.logitcrossentropy(X, np.zeros(5), axis=0), TypeError, "class numbers are integers"),
        (lambda: pb.nn.logitcrossentropy(X, np.full(5, 4), axis=0), ValueError, "go from 0 to 3, got 4 to 4"),
        (lambda: pb.nn.logitcrossentropy(X, np.zeros((4, 4)), axis=0), ValueError, "fit logits of shape"),
        (lambda: pb.nn.logitcrossentropy(X, X, axis=0, reduce="avg"), ValueError, "'mean', 'sum' or 'none'"),
        (lambda: pb.nn.softmax(X * 1j, axis=0), TypeError, "take real numbers"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_class_numbers_out_of_range_are_refused_whoever_follows_them():
    for tier in pb.TIERS:
        with pb.tier(tier), pytest.raises(ValueError, match="go from 0 to 3, got -1 to 2"):
            pb.value_and_grad(lambda x, t: pb.nn.logitcrossentropy(x, t, axis=0))(X, np.array([0, 1, 2, -1, 0]))
    with pytest.raises(ValueError, match="go from 0 to 3"):
        pb.vmap(lambda x, t: pb.nn.logitcrossentropy(x, t, axis=0))(np.stack([X, X]), np.full((2, 5), 4))


def test_class_numbers_compile():
    plan = pb.compile(pb.grad(lambda x, t: pb.nn.logitcrossentropy(x, t, axis=0)), tier="fused")
    labels = np.array([0, 3, 1, 1, 2])
    np.testing.assert_allclose(plan(X, labels), (PATTERNS["softmax"](X, 0) - np.eye(4)[:, labels]) / 5, rtol=1e-12)
    assert plan.summary()["fallbacks"] == []
