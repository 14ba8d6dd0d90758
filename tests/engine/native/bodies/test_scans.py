"""Loops as machine code, compared with the interpreter and with the tape."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.scipy import special

pytestmark = pytest.mark.skipif(not availability.is_available(), reason="native programs cannot be made here")

if availability.is_available():
    from pullback.backends.native.linking import forced_width
    from pullback.backends.native.linking.target import available_widths

    WIDTHS = available_widths()
else:
    WIDTHS = ()

rng = np.random.default_rng(3)
W = rng.normal(size=(5, 5)) / 3
U = rng.normal(size=(5, 3))
B = rng.normal(size=5)
XS = rng.normal(size=(7, 4, 3))
H = rng.normal(size=(4, 5))


@pytest.fixture(params=WIDTHS)
def width(request):
    with forced_width(request.param):
        yield request.param


def check(function, *args, rtol=1e-11, atol=1e-12):
    """A native plan gives what the tape and the interpreter give, with nothing left to the interpreter."""
    plan = pb.compile(function, tier="native")
    expected = function(*args)
    for _ in range(2):
        same(plan(*args), expected, rtol, atol)
    same(pb.compile(function, tier="stateful")(*args), expected, rtol, atol)
    # Functions that have no machine code yet are no matter of loops.
    assert [reason for reason in plan.summary()["fallbacks"] if "is not written" not in reason] == []


def same(found, expected, rtol, atol):
    if isinstance(expected, tuple | list):
        for one, other in zip(found, expected, strict=True):
            same(one, other, rtol, atol)
    elif isinstance(expected, pb.Block):
        same(found.array, expected.array, rtol, atol)
    else:
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
        assert getattr(found, "dtype", None) == getattr(expected, "dtype", None)


def layer(w, u, b, h, xs):
    def step(h, x):
        h = np.tanh(x @ u.T + h @ w.T + b)
        return h, h

    last, states = pb.scan(step, h, xs)
    return np.sum(states * states) + np.sum(last)


def test_gradients_through_a_loop_by_everything(width):
    del width
    check(pb.value_and_grad(layer, wrt=(0, 1, 2, 3, 4)), W, U, B, H, XS)


def test_gradients_in_single_precision(width):
    del width
    args = [array.astype("f4") for array in (W, U, B, H, XS)]
    check(pb.value_and_grad(layer, wrt=(0, 1, 2, 3, 4)), *args, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("length", [1, 2])
def test_short_loops(length):
    check(pb.value_and_grad(layer, wrt=(0, 4)), W, U, B, H, XS[:length].copy())


def test_a_loop_from_the_last_to_the_first():
    def backwards(x, xs):
        last, sums = pb.scan(lambda c, x: (c * 0.5 + x, np.tanh(c)), x, xs, reverse=True)
        return np.sum(last * sums)

    check(pb.value_and_grad(backwards, wrt=(0, 1)), B, rng.normal(size=(6, 5)))


def test_several_carries_that_change_places():
    def transposing(a, b, xs):
        (a, b), ys = pb.scan(lambda c, x: ((c[1] + x, c[0] * 2.0), c[0] - c[1]), (a, b), xs)
        return np.sum(a) + np.sum(b * b) + np.sum(ys)

    check(pb.value_and_grad(transposing, wrt=(0, 1, 2)), B, B[::-1].copy(), rng.normal(size=(5, 5)))


def test_constants_carries_and_inputs_that_are_views():
    def views(w, h, xs):
        last, ys = pb.scan(lambda h, x: (np.tanh(h @ w.T + x), h[::-1]), h.T, np.transpose(xs, (1, 2, 0)))
        return np.sum(last * ys[0]) + np.sum(ys)

    check(pb.value_and_grad(views, wrt=(0, 1, 2)), W, rng.normal(size=(5, 4)), rng.normal(size=(5, 6, 4)))


def test_a_carry_that_is_a_number_of_python():
    def total(xs):
        return pb.scan(lambda c, x: (c + x * x, c), 0.0, xs)[0]

    check(pb.value_and_grad(total), B)


def test_indices_are_carried_too():
    def counted(xs):
        (_, total), counts = pb.scan(lambda c, x: ((c[0] + 1, c[1] + x * c[0]), c[0]), (np.int64(0), 0.0), xs)
        return total, counts

    check(counted, B)


def test_a_loop_inside_a_loop(width):
    del width

    def nested(w, xs):
        def outer(h, x):
            h, _ = pb.scan(lambda h, row: (np.tanh(w @ h + row), None), h, x)
            return h, h

        return np.sum(pb.scan(outer, np.zeros(5), xs)[1] ** 2)

    check(pb.value_and_grad(nested, wrt=(0, 1)), W, rng.normal(size=(3, 4, 5)))


def test_gradients_of_gradients_through_a_loop():
    def slope(w, xs):
        inner = pb.grad(lambda w: np.sum(pb.scan(lambda h, x: (np.tanh(h @ w + x), None), np.zeros(5), xs)[0]))
        return np.sum(inner(w) * W)

    check(pb.value_and_grad(slope, wrt=(0, 1)), W, rng.normal(size=(4, 5)))


def test_forward_mode_through_a_loop():
    def moved(w, u, b, h, xs):
        return pb.jvp(lambda w: layer(w, u, b, h, xs), (w,), (W,))

    check(moved, W, U, B, H, XS)


@pytest.mark.parametrize(
    "step",
    [
        lambda c, x: pb.nn.logsumexp(c[:, None] + np.outer(x, x), axis=0),
        lambda c, x: pb.nn.softmax(c * x, axis=0),
        lambda c, x: pb.nn.logsoftmax(c + x, axis=0) * pb.nn.logitcrossentropy(c, np.abs(x), axis=0),
        lambda c, x: np.linalg.eigvalsh(np.outer(c, x) + np.diag(np.arange(5.0))) + np.linalg.norm(c),
    ],
)
def test_rules_that_are_written_out_are_so_in_a_loop_too(step):
    xs = rng.normal(size=(4, 5))
    gradient = pb.value_and_grad(
        lambda c, xs: np.sum(pb.scan(lambda c, x: (step(c, x), None), c, xs)[0] ** 2), wrt=(0, 1)
    )
    for tier in ("stateful", "native"):
        plan = pb.compile(gradient, tier=tier)
        value, slopes = plan(xs[0], xs)
        expected, others = gradient(xs[0], xs)
        np.testing.assert_allclose(value, expected, rtol=1e-11)
        for one, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert plan.summary()["fallbacks"] == []


def test_what_a_loop_has_no_native_form_for_is_named():
    def products(xs):
        return np.sum(pb.scan(lambda c, x: (c + special.gammaln(x * x + 1.0), None), np.zeros(5), xs)[0] ** 2)

    xs = rng.normal(size=(4, 5))
    plan = pb.compile(products, tier="native")
    np.testing.assert_allclose(plan(xs), products(xs))
    assert any(reason.startswith("scan, as") for reason in plan.summary()["fallbacks"])


# --- recurrent layers -----------------------------------------------------------------------------------------------------
LAYERS = {
    "rnn": (pb.nn.rnn_block, pb.nn.rnn, 1),
    "rnn relu": (pb.nn.rnn_block, lambda p, x, h=None: pb.nn.rnn(p, x, h, act="relu"), 1),
    "lstm": (pb.nn.lstm_block, pb.nn.lstm, 2),
    "gru": (pb.nn.gru_block, pb.nn.gru, 1),
    "gru before": (pb.nn.gru_block, lambda p, x, h=None: pb.nn.gru(p, x, h, reset="before"), 1),
}


def total_of(name):
    def total(params, x, *states):
        result = LAYERS[name][1](params, x, *states)
        return sum(np.sum(np.tanh(part)) for part in (result if isinstance(result, tuple) else (result,)))

    return total


def given(name, *, with_states):
    block, _, states = LAYERS[name]
    params = block(3, 5, init=pb.nn.glorot_uniform(rng))
    return (params, XS, *([rng.normal(size=(4, 5)) for _ in range(states)] if with_states else []))


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("with_states", [False, True])
def test_gradients_of_recurrent_layers(name, with_states):
    args = given(name, with_states=with_states)
    check(pb.value_and_grad(total_of(name), wrt=tuple(range(len(args)))), *args)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("name", LAYERS)
def test_values_of_recurrent_layers(name, width):
    del width
    check(LAYERS[name][1], *given(name, with_states=False))


def test_a_layer_of_one_step():
    params, x = given("lstm", with_states=False)
    check(pb.value_and_grad(total_of("lstm"), wrt=(0, 1)), params, x[:1].copy())


def test_a_single_example():
    params, x = given("lstm", with_states=False)
    check(pb.value_and_grad(total_of("lstm"), wrt=(0, 1)), params, x[:, 0].copy())


def test_layers_on_top_of_each_other():
    params = pb.nn.gru_block(3, 5, layers=2, init=pb.nn.glorot_uniform(rng))
    check(pb.value_and_grad(lambda p, x: np.sum(np.tanh(pb.nn.gru(p, x))), wrt=(0, 1)), params, XS)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_a_function_of_the_gradient_of_a_layer(name):
    params, x = given(name, with_states=False)
    shapes = {part: view.shape for part, view in params.items()}

    def norm(array, x):
        def loss(array):
            return total_of(name)(pb.Block.around(array, shapes), x)

        slope = pb.grad(loss)(array)
        return np.sum(slope * slope)

    check(pb.value_and_grad(norm, wrt=(0, 1)), params.array, x, rtol=1e-9, atol=1e-10)


def test_the_number_of_a_step_is_a_number_of_python():
    def weighted(x):
        return pb.fori_loop(0, 6, lambda i, total: total + x * i, x)

    check(pb.value_and_grad(lambda x: np.sum(weighted(x) ** 2)), B)
    check(weighted, B)


def test_a_carry_is_not_copied_where_it_is_collected():
    def run(h, xs):
        return pb.scan(lambda h, x: (np.tanh(h @ W + x), None), h, xs)[0]

    def collected(h, xs):
        return pb.scan(lambda h, x: ((after := np.tanh(h @ W + x)), after), h, xs)

    xs = rng.normal(size=(3, 4, 5))
    check(collected, H, xs)
    check(run, H, xs)
    stores = [plan_text(function, H, xs).count("memcpy") for function in (run, collected)]
    assert stores[0] == stores[1]


def plan_text(function, *args):
    from pullback import trees
    from pullback.backends.native.memory import plan_memory
    from pullback.backends.native.program import emit_program
    from pullback.core.types import type_of
    from pullback.passes.pipeline import Stages, simplify
    from pullback.traces.recorder import record

    graph, _ = record(lambda *traced: trees.flatten(function(*traced)), [type_of(arg) for arg in args], list(args))
    return emit_program(plan_memory(simplify(graph, Stages(), lowered=True), 256), 256).text()
