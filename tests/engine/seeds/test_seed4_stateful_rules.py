"""Seed 4: rules whose saved values live in kept state, and that put back what they overwrite.

One test per requirement, by its number: S4-1 to S4-8. The parts have tests of their own: stacks and runs in
test_contexts.py, what a rule may answer in test_rule.py, products and ufuncs in place in rules/test_gemm.py and
rules/test_inplace.py.
"""

import gc
import threading
import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback import contexts
from pullback.core.primitive import Primitive
from pullback_runners.allocations import ArrayCounter

KEPT = [tier for tier in pb.TIERS if tier != "unfused"]
KEEPING_TIERS = pytest.mark.parametrize("tier", KEPT)
EVERY_TIER = pytest.mark.parametrize("tier", pb.TIERS)


@pytest.fixture(autouse=True)
def context():
    with contexts.using(contexts.RunContext()) as own:
        yield own


@pb.rule.stateful(reference=lambda x, w: np.tanh(x * w))
def gate(signature):
    """The reference with what its pullback needs in state."""

    class Gate:
        def forward(self, visit, x, w):
            visit.x, visit.w = visit.save(x), visit.save(w)
            visit.y = np.tanh(np.multiply(x, w, out=visit.empty(x.shape)), out=visit.empty(x.shape))
            return visit.y

        def pullback(self, visit, y_bar):
            slope = y_bar * (1 - visit.y**2)
            return slope * visit.w, slope * visit.x

    return Gate()


def plain_gate(x, w):
    return np.tanh(x * w)


def vectors(size, count=2, seed=0):
    return np.random.default_rng(seed).normal(size=(count, size))


def assert_same_gradients(function, reference, *args):
    wrt = tuple(range(len(args)))
    for ours, theirs in zip(pb.grad(function, wrt=wrt)(*args), pb.grad(reference, wrt=wrt)(*args), strict=True):
        np.testing.assert_allclose(ours, theirs)


def new_arrays(call):
    """Arrays made by a call once it is warm: how many, and their bytes."""
    call()
    counter = ArrayCounter()
    with counter.window():
        call()
    count = counter.read()
    return count.allocations, count.requested_bytes


def seed_matrices():
    rng = np.random.default_rng(0)
    c = rng.normal(size=(16, 8))
    c[0, 0] = -0.0
    c.view(np.uint64)[0, 1] = 0x7FF8_0000_DEAD_BEEF  # a NaN with a payload
    return c, rng.normal(size=(16, 32)), rng.normal(size=(32, 8)), rng.normal(size=(16, 8))


# --- S4-1 ---------------------------------------------------------------------------------------------------------------


def test_s4_1_no_new_array_after_the_first_visit(context):
    large = np.ones(10_000)

    @pb.rule.stateful
    def scaled_first(signature):
        class ScaledFirst:
            def forward(self, visit, factor, x):
                visit.x = visit.save(x)
                return factor * visit.x.item(0)

            def pullback(self, visit, y_bar):
                return float(y_bar) * visit.x.item(0), None

        return ScaledFirst()

    def visits(count):
        def looped(factor):
            for _ in range(count):
                factor = scaled_first(factor, large)
            return factor

        return lambda: pb.grad(looped)(2.0)

    # What `grad` itself makes is numbers in arrays, as many for one visit as for twenty.
    few, many = new_arrays(visits(1)), new_arrays(visits(20))
    assert few == many
    assert many[1] < 100
    assert context.state_bytes >= 20 * large.nbytes
    before = context.state_bytes
    tracemalloc.start()
    try:
        visits(20)()
        visits(20)()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < large.nbytes  # Python's own small objects
    assert context.state_bytes == before


@KEEPING_TIERS
def test_s4_1_restore_copies_cost_no_new_array(tier):
    c, a, b, g = seed_matrices()

    def gradient_by_a():
        return pb.vjp(lambda a: pb.inplace.gemm(c, a, b, 2.0, 0.5), a)[1](g)

    def forward():
        pb.vjp(lambda a: pb.inplace.gemm(c, a, b, 2.0, 0.5), a)

    with pb.tier("unfused"):
        plain_count, plain_bytes = new_arrays(gradient_by_a)
        assert new_arrays(forward) == (1, c.nbytes)
    c[...], _, _, _ = seed_matrices()
    with pb.tier(tier):
        assert new_arrays(gradient_by_a) == (plain_count - 1, plain_bytes - c.nbytes)
        assert new_arrays(forward) == (0, 0)


def test_s4_1_the_size_of_the_state_is_reported(context):
    x, w = vectors(1000)
    assert context.state_bytes == 0
    pb.grad(lambda x: np.sum(gate(x, w)))(x)
    first = context.state_bytes
    assert 4 * x.nbytes <= first <= 8 * x.nbytes
    pb.grad(lambda x: np.sum(gate(x, w)))(x)
    assert context.state_bytes == first
    assert contexts.current() is context


# --- S4-2 ---------------------------------------------------------------------------------------------------------------


@EVERY_TIER
def test_s4_2_what_was_overwritten_and_its_cotangent_are_restored_bit_for_bit(tier):
    c, a, b, g = seed_matrices()
    c_before, g_before = c.tobytes(), g.tobytes()
    with pb.tier(tier):
        for overwrite in (
            lambda c, a: pb.inplace.matmul(c, a, b),
            lambda c, a: pb.inplace.gemm(c, a, b, 2.0, 0.5),
            lambda c, a: pb.inplace.tanh(pb.inplace.multiply(c, a[:, :8])),
        ):
            y, pullback = pb.vjp(overwrite, c, a)
            assert y is c
            assert c.tobytes() != c_before
            pullback(g)
            assert (c.tobytes(), g.tobytes()) == (c_before, g_before)
            pb.grad(lambda c, a, overwrite=overwrite: np.sum(overwrite(c, a)), wrt=(0, 1))(c, a)
            assert c.tobytes() == c_before


# --- S4-3 ---------------------------------------------------------------------------------------------------------------


def test_s4_3_a_loop_visits_a_rule_many_times_before_its_first_pullback():
    def looped(rule):
        def function(x, w):
            for _ in range(6):
                x = rule(x, w)
            return np.sum(x)

        return function

    assert_same_gradients(looped(gate), looped(plain_gate), *vectors(7))


def test_s4_3_recursion_visits_a_rule_at_differing_sizes():
    def recursive(rule):
        def function(x, w):
            below = function(x[1:], w[1:]) if len(x) > 1 else 0.0
            return below + np.sum(rule(x, w) * rule(w, x)) + np.sum(rule(x[:1], w[:1]))

        return function

    for size in (6, 3, 8, 6):
        assert_same_gradients(recursive(gate), recursive(plain_gate), *vectors(size))


def test_s4_3_one_rule_at_two_call_sites():
    def two_sites(rule):
        def first(x, w):
            return rule(x, w)

        def second(x, w):
            return rule(2 * w, x)

        return lambda x, w: np.sum(first(x, w) * second(x, w) * first(second(x, w), w))

    assert_same_gradients(two_sites(gate), two_sites(plain_gate), *vectors(5))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first comes first", "latest comes first"])
def test_s4_3_two_runs_are_open_at_once(order):
    args = [vectors(5, seed=seed) for seed in (1, 2)]
    pullbacks = [pb.vjp(gate, *arg)[1] for arg in args]
    for run in order:
        for ours, theirs in zip(pullbacks[run](np.ones(5)), pb.vjp(plain_gate, *args[run])[1](np.ones(5)), strict=True):
            np.testing.assert_allclose(ours, theirs)


def test_s4_3_the_second_sweep_of_the_same_depth_makes_no_state(context):
    def looped(x, w):
        for _ in range(6):
            x = gate(x, w)
        return np.sum(x)

    x, w = vectors(200)
    pb.grad(looped)(x, w)
    before = context.state_bytes
    for _ in range(3):
        pb.grad(looped)(x, w)
        assert context.open_frames == 0
    assert context.state_bytes == before


# --- S4-4 ---------------------------------------------------------------------------------------------------------------


@EVERY_TIER
def test_s4_4_an_exception_between_forward_and_pullback_resets_the_stack(tier, context):
    c, a, b, _ = seed_matrices()
    before = c.tobytes()

    def fails(x, w):
        gate(gate(x, w), w)
        pb.inplace.matmul(c, a, b)
        raise RuntimeError("between")

    x, w = vectors(4)
    with pb.tier(tier):
        for _ in range(3):
            with pytest.raises(RuntimeError, match="between"):
                pb.grad(fails)(x, w)
            with pytest.raises(RuntimeError, match="between"):
                pb.vjp(fails, x, w)
    assert context.open_frames == 0
    assert c.tobytes() == before
    assert_same_gradients(lambda x, w: np.sum(gate(x, w)), lambda x, w: np.sum(plain_gate(x, w)), x, w)


def test_s4_4_an_abandoned_pullback_gives_its_state_back(context):
    x, w = vectors(100)
    pb.vjp(gate, x, w)[1](np.ones(100))
    before = context.state_bytes
    for _ in range(10):
        _, pullback = pb.vjp(gate, x, w)
        del pullback
    gc.collect()
    assert context.open_frames == 0
    assert context.state_bytes == before


def test_s4_4_nested_differentiation():
    def nested(rule):
        def function(x, w):
            y = rule(x, w)
            inner = pb.grad(lambda v: np.sum(rule(v, np.ones(5))))(np.linspace(0.0, 1.0, 5))
            return np.sum(rule(y, w) * inner)

        return function

    assert_same_gradients(nested(gate), nested(plain_gate), *vectors(5))
    hessian = pb.grad(lambda x, w: np.sum(pb.grad(lambda x: np.sum(gate(x, w)))(x) ** 2))
    reference = pb.grad(lambda x, w: np.sum(pb.grad(lambda x: np.sum(plain_gate(x, w)))(x) ** 2))
    np.testing.assert_allclose(hessian(*vectors(5)), reference(*vectors(5)))


def test_s4_4_threads_do_not_meet():
    args = [vectors(50, seed=seed) for seed in range(8)]
    results = [None] * len(args)
    barrier = threading.Barrier(len(args))

    def work(position):
        def function(x, w):
            for _ in range(20):
                x = gate(x, w)
            return np.sum(x)

        barrier.wait()
        for _ in range(5):
            results[position] = pb.grad(function)(*args[position])

    def plain(x, w):
        for _ in range(20):
            x = plain_gate(x, w)
        return np.sum(x)

    threads = [threading.Thread(target=work, args=(position,)) for position in range(len(args))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result, arg in zip(results, args, strict=True):
        np.testing.assert_allclose(result, pb.grad(plain)(*arg))


def test_s4_4_a_pullback_in_another_thread_raises():
    _, pullback = pb.vjp(gate, *vectors(3))
    caught = []

    def work():
        try:
            pullback(np.ones(3))
        except pb.errors.StateError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert caught
    assert "two threads" in caught[0]


# --- S4-5 ---------------------------------------------------------------------------------------------------------------


def test_s4_5_a_pullback_called_twice_raises():
    _, pullback = pb.vjp(gate, *vectors(3))
    pullback(np.ones(3))
    with pytest.raises(pb.errors.PullbackReuseError, match="call vjp"):
        pullback(np.ones(3))


def test_s4_5_frames_released_out_of_order_raise(context):
    stack = context.take()
    first, second = stack.push((1,), np.dtype(float)), stack.push((1,), np.dtype(float))
    with pytest.raises(pb.errors.StateError, match="out of order"):
        first.release()
    second.release()
    with pytest.raises(pb.errors.StateError, match="twice"):
        second.release()


# --- S4-6 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.sample(every=5)
@EVERY_TIER
@pytest.mark.parametrize("flags", ["NN", "TN", "NT", "TT", "CC"])
@pytest.mark.parametrize(
    ("overwrite", "formula"),
    [
        (lambda g, x, y: g(y, x, x), lambda op, x, y: op(0, x) @ op(1, x) - 0.5 * y),
        (lambda g, x, y: g(x, x, y), lambda op, x, y: op(0, x) @ op(1, y) - 0.5 * x),
        (lambda g, x, y: g(x, y, x), lambda op, x, y: op(0, y) @ op(1, x) - 0.5 * x),
        (lambda g, x, y: g(x, x, x), lambda op, x, y: op(0, x) @ op(1, x) - 0.5 * x),
        (lambda g, x, y: g(x, x[::-1], y), lambda op, x, y: op(0, x[::-1]) @ op(1, y) - 0.5 * x),
    ],
    ids=["A is B", "C is A", "C is B", "all one", "an overlapping view"],
)
def test_s4_6_aliased_operands(tier, flags, overwrite, formula):
    x, y = np.random.default_rng(0).normal(size=(2, 4, 4))
    before = x.tobytes(), y.tobytes()

    def gemm(c, a, b):
        return pb.inplace.gemm(c, a, b, 1.0, -0.5, trans_a=flags[0], trans_b=flags[1])

    def op(which, matrix):
        return matrix if flags[which] == "N" else matrix.T

    want = pb.grad(lambda x, y: np.sum(formula(op, x, y) ** 2), wrt=(0, 1))(x, y)
    with pb.tier(tier):
        ours = pb.grad(lambda x, y: np.sum(overwrite(gemm, x, y) ** 2), wrt=(0, 1))(x, y)
    for gradient, theirs in zip(ours, want, strict=True):
        np.testing.assert_allclose(gradient, theirs, atol=1e-12)
    assert (x.tobytes(), y.tobytes()) == before


# --- S4-7 ---------------------------------------------------------------------------------------------------------------


def test_s4_7_a_rule_calls_back_into_differentiation():
    @pb.rule.stateful(reference=lambda x: np.sum(np.sin(x) * x))
    def energy(signature):
        class Energy:
            def forward(self, visit, x):
                y, visit.inner = visit.vjp(lambda v: np.sum(np.sin(v) * v), x)
                return y

            def pullback(self, visit, y_bar):
                return visit.inner(y_bar)

        return Energy()

    x = np.linspace(0.0, 2.0, 5)
    np.testing.assert_allclose(pb.grad(lambda x: energy(x) ** 2)(x), pb.grad(lambda x: energy.reference(x) ** 2)(x))


def test_s4_7_recursion_through_a_rule_terminates_and_builds_only_what_runs():
    built = []

    @pb.rule.stateful
    def folded(signature):
        (size,) = signature.types[0].shape
        built.append(size)

        class Folded:
            """x[0] * tanh(folded(x[1:]))."""

            def forward(self, visit, x):
                visit.first = visit.save(x[:1])
                if size == 1:
                    return x[0]
                visit.y, visit.inner = visit.vjp(lambda rest: np.tanh(folded(rest)), x[1:])
                return visit.first[0] * visit.y

            def pullback(self, visit, y_bar):
                if size == 1:
                    return (np.full(1, y_bar),)
                (rest_bar,) = visit.inner(y_bar * visit.first[0])
                return (np.concatenate([[y_bar * visit.y], rest_bar]),)

        return Folded()

    def plain(x):
        return x[0] * np.tanh(plain(x[1:])) if len(x) > 1 else x[0]

    x = np.linspace(0.5, 1.5, 6)
    assert built == []
    for _ in range(3):
        np.testing.assert_allclose(pb.grad(folded)(x), pb.grad(plain)(x))
        np.testing.assert_allclose(
            pb.grad(lambda x: folded(x) * folded(x[:3]))(x), pb.grad(lambda x: plain(x) * plain(x[:3]))(x)
        )
    assert built == [6, 5, 4, 3, 2, 1]
    assert contexts.current().open_frames == 0


# --- S4-8 ---------------------------------------------------------------------------------------------------------------


def test_s4_8_a_builder_may_leave_types_to_the_functional_rule():
    built = []

    @pb.rule.stateful(reference=lambda x: x * x)
    def square(signature):
        built.append(signature.types[0].shape)

    x = np.ones(3)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(square(x)))(x), 2 * x)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(square(x)))(x), 2 * x)
    assert built == [(3,)]
    assert contexts.current().state_bytes == 0


def test_s4_8_functional_rules_keep_no_state_and_their_pullbacks_stay_reusable(context):
    x = np.linspace(0.0, 1.0, 5)
    _, pullback = pb.vjp(lambda x: np.tanh(x) * np.exp(x), x)
    np.testing.assert_array_equal(pullback(np.ones(5))[0], pullback(np.ones(5))[0])
    assert context.state_bytes == 0
    assert "gate" not in Primitive.table
