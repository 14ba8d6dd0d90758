"""The stateful tier keeps its promise for every rule: after the first calls no array, and the numbers of the tape."""

import numpy as np
import pytest

import pullback as pb

nn = pb.nn
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape)


def plain(tree):
    """The arrays of a tree of gradients, in order."""
    if isinstance(tree, pb.Block):
        return [tree.array]
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in plain(part)]
    return [leaf for part in tree for leaf in plain(part)] if isinstance(tree, (tuple, list)) else [tree]


@pytest.fixture
def keeps_its_memory(arrays_in_steady_state):
    """Compare a gradient in the stateful tier with the tape, and count."""

    def check(loss, *args, wrt=None, transient=()):
        wrt = tuple(range(len(args))) if wrt is None else wrt
        gradient = pb.value_and_grad(loss, wrt=wrt)
        with pb.tier("unfused"):
            expected = gradient(*args)
        plan = pb.compile(gradient, tier="stateful")
        for held in (False, True):
            counts = arrays_in_steady_state(lambda: plan(*args), held=held)
            assert counts == {0} or transient
        for ours, theirs in zip(plain(plan(*args)), plain(expected), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
        summary = plan.summary()
        assert (summary["fallbacks"], summary["transient"]) == ([], list(transient))

    return check


# --- writing into arrays --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (2.0, 0.5), (-0.5, 1.0)])
def test_products_into_arrays(alpha, beta, keeps_its_memory):
    def loss(c, a, b):
        return np.sum(pb.inplace.gemm(c, a, b, alpha, beta, trans_a="T") ** 2)

    # With a beta of 0 the old contents lead nowhere: their gradient is zeros, made when it is asked for.
    keeps_its_memory(loss, normal(3, 5), normal(4, 3), normal(4, 5), wrt=(0, 1, 2) if beta else (1, 2))


# --- the softmax family ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [nn.softmax, nn.logsoftmax, nn.logsumexp])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_its_relatives(rule, axis, keeps_its_memory):
    keeps_its_memory(lambda x, w: np.sum(rule(x, axis=axis) ** 2) * np.sum(w), normal(3, 4, 5), normal(2))


def test_cross_entropy_of_probabilities_and_of_class_numbers(keeps_its_memory):
    x, target = normal(4, 3), np.abs(normal(4, 3))
    target[1, 2] = 0.0
    keeps_its_memory(lambda x, t: np.sum(nn.logitcrossentropy(x, t, axis=0)), x, target)
    for dtype in (np.int64, np.int32, np.uint8):
        classes = np.array([2, 0, 1, 1], dtype)
        keeps_its_memory(lambda x, t: np.sum(nn.logitcrossentropy(x, t, axis=1)), x, classes, wrt=(0,))


def test_a_plan_looks_at_class_numbers_on_every_call():
    plan = pb.compile(lambda x, t: np.sum(nn.logitcrossentropy(x, t, axis=1)), tier="stateful")
    x = normal(2, 3)
    plan(x, np.array([0, 2]))
    for wrong in ([0, 3], [-1, 0]):
        with pytest.raises(ValueError, match="class numbers go from 0 to 2"):
            plan(x, np.array(wrong))


def test_rows_of_minus_infinity_are_the_logarithm_of_zero_without_a_warning():
    plan = pb.compile(lambda x: nn.logsumexp(x, axis=1), tier="stateful")
    x = np.array([[-np.inf, -np.inf], [0.0, np.inf], [1.0, np.nan]])
    np.testing.assert_array_equal(plan(x), [-np.inf, np.inf, np.nan])


# --- reductions, orders, products -----------------------------------------------------------------------------------


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
@pytest.mark.parametrize("reduce", [np.max, np.min, np.sum, np.mean, np.var, np.std])
def test_reductions(reduce, axis, keeps_its_memory):
    keeps_its_memory(lambda x: np.sum(reduce(x, axis=axis) ** 2), normal(3, 4, 5))
    keeps_its_memory(lambda x: np.sum(x * reduce(x, axis=axis, keepdims=True)), normal(3, 4, 5))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_running_sums_and_products(axis, keeps_its_memory):
    for function in (np.cumsum, np.cumprod, np.prod):
        keeps_its_memory(lambda x, function=function: np.sum(function(x, axis=axis) ** 2), normal(3, 4))
    keeps_its_memory(lambda x: np.sum(np.cumprod(x)), np.array([2.0, 0.0, -1.0, 0.0, 3.0]))


@pytest.mark.parametrize("order", [1, 2, 3.0, np.inf])
def test_norms(order, keeps_its_memory):
    keeps_its_memory(lambda x: np.sum(np.linalg.norm(x, ord=order, axis=1)), normal(3, 4))


def test_a_norm_of_zero_is_refused_at_second_order_in_a_plan_too():
    def norm(x):
        return np.linalg.norm(x)

    plan = pb.compile(pb.grad(lambda x: np.sum(pb.grad(norm)(x))), tier="stateful")
    plan(np.ones(3))
    with pytest.raises(pb.errors.DifferentiationError, match="does not exist"):
        plan(np.zeros(3))


@pytest.mark.parametrize("find", [np.argmax, np.argmin])
@pytest.mark.parametrize("axis", [0, 1])
def test_positions_of_extrema(find, axis, keeps_its_memory):
    def loss(x, c):
        return (
            np.sum((x - c[find(x, axis=axis) % 3]) ** 2) if axis == 0 else np.sum((x.T - c[find(x, axis=axis)].T) ** 2)
        )

    keeps_its_memory(loss, normal(4, 4), normal(4, 4))


# --- parts of arrays ------------------------------------------------------------------------------------------------

POSITIONS = np.array([0, 3, 3, -1])


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint16])
def test_reading_by_positions(dtype, keeps_its_memory):
    x, i = normal(5, 4, 3), np.array([0, 3, 3, 1]).astype(dtype)
    keeps_its_memory(lambda x, i: np.sum(x[i] ** 2) + np.sum(x[:, i] ** 3) + np.sum(x[i, i] ** 2), x, i, wrt=(0,))
    keeps_its_memory(lambda x, i: np.sum(x.T[i[:3] % 3] ** 2), x, i, wrt=(0,))
    keeps_its_memory(lambda x, i: np.sum(np.take(x, i, axis=1) ** 2), x, i, wrt=(0,))
    keeps_its_memory(lambda x: np.sum(x[POSITIONS, POSITIONS] ** 2), x)


def test_reading_along_an_axis(keeps_its_memory):
    x, i = normal(3, 4), RNG.integers(-4, 4, size=(3, 6))
    keeps_its_memory(lambda x, i: np.sum(np.take_along_axis(x, i, axis=1) ** 2), x, i, wrt=(0,))
    keeps_its_memory(lambda x, i: np.sum(np.take_along_axis(x.T, i.T, axis=0) ** 2), x, i, wrt=(0,))


def test_positions_out_of_bounds_are_refused_by_a_plan_as_by_numpy():
    for read in (
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x[i, i],
        lambda x, i: np.take_along_axis(x, i, 1),
    ):
        plan = pb.compile(read, tier="stateful")
        i = np.zeros((4, 1), int)
        x = normal(4, 4)
        np.testing.assert_array_equal(plan(x, i - 1), read(x, i - 1))
        for wrong in (4, -5):
            i[1] = wrong
            with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
                plan(x, i)


def test_joining_cutting_and_filling_up(keeps_its_memory):
    def loss(x):
        joined = np.concatenate([x, 2 * x]) + np.pad(x, ((2, 1), (0, 0)))[:1]
        rolled = np.roll(x, 2, axis=0) * np.flip(x, 1)
        return (
            np.sum(joined**2) + np.sum(np.stack([x, x * x], axis=1) ** 3) + np.sum(rolled) + np.sum(np.tile(x, (2, 3)))
        )

    keeps_its_memory(loss, normal(3, 4))


def test_diagonals_and_triangles(keeps_its_memory):
    def loss(x):
        return np.sum(np.diagonal(x, 1) ** 2) + np.trace(x) ** 2 + np.sum(np.tril(x) ** 2) + np.sum(np.triu(x, 1) ** 3)

    keeps_its_memory(loss, normal(4, 4))


# --- recurrent layers -----------------------------------------------------------------------------------------------

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 2, 5
LAYERS = {
    "rnn": (nn.rnn_block, nn.rnn, {}),
    "rnn relu": (nn.rnn_block, nn.rnn, {"act": "relu"}),
    "lstm": (nn.lstm_block, nn.lstm, {}),
    "gru after": (nn.gru_block, nn.gru, {"reset": "after"}),
    "gru before": (nn.gru_block, nn.gru, {"reset": "before"}),
}


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("asked", [(0,), (1,), (2,), (0, 1, 2)], ids=["parameters", "x", "state", "all"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("name", sorted(LAYERS))
def test_recurrent_layers_with_an_initial_state(name, bias, asked, keeps_its_memory):
    block, layer, options = LAYERS[name]

    def loss(params, x, h0):
        states = layer(params, x, h0, **({"c0": h0 * 2} if layer is nn.lstm else {}), **options)
        return sum(np.sum(part**2) for part in (states if layer is nn.lstm else (states,)))

    params = block(INPUTS, HIDDEN, bias=bias)
    keeps_its_memory(loss, params, normal(STEPS, BATCH, INPUTS), normal(BATCH, HIDDEN), wrt=asked)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("name", sorted(LAYERS))
def test_stacks_of_recurrent_layers(name, steps, keeps_its_memory):
    block, layer, options = LAYERS[name]

    def loss(params, x):
        states = layer(params, x, **options)
        return np.sum((states[0] if layer is nn.lstm else states)[-1] ** 2)

    keeps_its_memory(loss, [block(INPUTS, HIDDEN), block(HIDDEN, HIDDEN)], normal(steps, BATCH, INPUTS))
    keeps_its_memory(loss, [block(INPUTS, HIDDEN), block(HIDDEN, HIDDEN)], normal(steps, INPUTS), wrt=(0,))


def test_recurrent_layers_on_a_view_of_another_layout(keeps_its_memory):
    def loss(params, x):
        return np.sum(nn.rnn(params, np.moveaxis(x, 1, 0)) ** 2)

    keeps_its_memory(loss, nn.rnn_block(INPUTS, HIDDEN), normal(BATCH, STEPS, INPUTS))


def test_reshapes_that_are_no_views(keeps_its_memory):
    keeps_its_memory(lambda x: np.sum(x.T.reshape(-1)[2:5] ** 2) + np.sum(x[:, ::2].ravel() ** 2), normal(3, 4))

    def steps(x):
        return np.sum(pb.scan(lambda c, _: (np.reshape(c.T * 2.0, (3, 4)) * 0.5, None), x, None, length=3)[0] ** 2)

    keeps_its_memory(steps, normal(3, 4))


# --- convolutions and pooling ---------------------------------------------------------------------------------------


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("pointwise", [False, True])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "pad": 1}, {"dilation": 2, "pad": ((1, 2),)}, {"groups": 2}])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank, options, pointwise, keeps_its_memory):
    if "dilation" in options:
        options = {**options, "pad": options["pad"] * rank}
    window = (1 if pointwise else 2,) * rank
    w, x, b = normal(4, 4 // options.get("groups", 1), *window), normal(2, 4, *(5, 6, 4)[:rank]), normal(4)

    def loss(w, x, b):
        return np.sum(nn.conv_bias_act(w, x, b, act=nn.tanh, **options) ** 2)

    keeps_its_memory(loss, w, x, b)
    keeps_its_memory(lambda w, x: np.sum(nn.conv(w, x, **options) ** 2), w, x)


@pytest.mark.parametrize("pool", [nn.max_pool, nn.mean_pool])
@pytest.mark.parametrize("options", [{}, {"stride": 1}, {"stride": 1, "pad": 1}])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pooling(rank, pool, options, keeps_its_memory):
    keeps_its_memory(lambda x: np.sum(pool(x, 2, **options) ** 2), normal(2, 3, *(5, 6, 4)[:rank]))


@pytest.mark.parametrize("act", [nn.relu, nn.leakyrelu])
def test_a_layer_with_a_mask_before_pooling(act, keeps_its_memory):
    def loss(w, x, b):
        return np.sum(nn.max_pool(nn.conv_bias_act(w, x, b, act=act), 2) ** 2)

    keeps_its_memory(loss, normal(3, 2, 2, 2), normal(20, 2, 5, 5), normal(3))


def test_a_convolution_in_bands_and_on_a_transposed_image(keeps_its_memory, monkeypatch):
    from pullback.rules import window_products

    monkeypatch.setattr(window_products, "COLUMN_BYTES", 1024)
    keeps_its_memory(lambda w, x: np.sum(nn.conv(w, x, pad=1) ** 2), normal(4, 2, 3, 3), normal(5, 2, 9, 8))
    keeps_its_memory(
        lambda w, x: np.sum(nn.conv(w, np.moveaxis(x, -1, 1)) ** 2), normal(4, 2, 3, 3), normal(3, 9, 8, 2)
    )
