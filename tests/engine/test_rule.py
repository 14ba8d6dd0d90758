"""Stateful rules: what they are asked, what they may answer, and where the reference stands in."""

import numpy as np
import pytest

import pullback as pb
from pullback import contexts
from pullback.rule import SIGNATURES_KEPT

X = np.linspace(-1.0, 1.0, 6)


class Squares:
    """x * x, keeping x."""

    def forward(self, visit, x):
        visit.x = visit.save(x)
        return visit.x * visit.x

    def pullback(self, visit, y_bar):
        return (2 * visit.x * y_bar,)


@pb.rule.stateful(reference=lambda x: x * x)
def square(signature):
    return Squares()


@pb.rule.stateful
def square_alone(signature):
    return Squares()


def loss(x):
    return np.sum(np.sin(square(x)))


def plain(x):
    return np.sum(np.sin(x * x))


@pytest.fixture(autouse=True)
def nothing_stays_open():
    yield
    assert contexts.current().open_frames == 0


@pytest.mark.parametrize("tier", pb.TIERS)
def test_value_and_gradient_in_every_tier(tier):
    with pb.tier(tier):
        value, gradient = pb.value_and_grad(loss)(X)
    np.testing.assert_allclose(value, plain(X))
    np.testing.assert_allclose(gradient, pb.grad(plain)(X))


def test_the_reference_serves_forward_mode_vmap_and_higher_orders():
    np.testing.assert_allclose(pb.jvp(loss, (X,), (X,))[1], pb.jvp(plain, (X,), (X,))[1])
    np.testing.assert_allclose(pb.hvp(loss, X, X), pb.hvp(plain, X, X))
    np.testing.assert_allclose(pb.vmap(loss)(np.stack([X, 2 * X])), [plain(X), plain(2 * X)])
    pb.testing.check_grads(loss, [X])


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: pb.jvp(f, (X,), (X,)),
        lambda f: pb.grad(lambda x: np.sum(pb.grad(f)(x)))(X),
        lambda f: pb.vmap(f)(np.stack([X, X])),
    ],
    ids=["forward", "second order", "vmap"],
)
def test_without_a_reference_these_are_refused_with_the_remedy(transformed):
    with pytest.raises(
        pb.errors.DifferentiationError, match=r"square_alone .*give it one: @pb.rule.stateful\(reference"
    ):
        transformed(lambda x: np.sum(square_alone(x)))


def test_without_a_reference_a_plan_runs_on_the_tape_and_says_so():
    plan = pb.compile(pb.grad(lambda x: np.sum(square_alone(x))), tier="fused")
    np.testing.assert_allclose(plan(X), 2 * X)
    assert "square_alone is a stateful rule without a reference" in plan.summary()["fallbacks"][0]


def test_a_plan_watches_what_the_reference_takes_from_around_it():
    rate = 2.0

    @pb.rule.stateful(reference=lambda x: x * rate)
    def scaled(signature):
        return None

    plan = pb.compile(pb.grad(lambda x: np.sum(scaled(x))), tier="fused")
    np.testing.assert_array_equal(plan(X), np.full_like(X, 2.0))
    rate = 3.0
    np.testing.assert_array_equal(plan(X), np.full_like(X, 3.0))


def test_without_differentiation_the_value_costs_no_state():
    np.testing.assert_allclose(square(X), X * X)
    assert contexts.current().open_frames == 0


def test_what_is_returned_is_never_the_state_itself():
    @pb.rule.stateful
    def in_state(signature):
        class InState:
            def forward(self, visit, x):
                return np.multiply(x, 2.0, out=visit.empty(x.shape, x.dtype))

            def pullback(self, visit, y_bar):
                return (np.multiply(y_bar, 2.0, out=visit.empty(y_bar.shape, y_bar.dtype)),)

        return InState()

    y, pullback = pb.vjp(in_state, X)
    (x_bar,) = pullback(np.ones_like(X))
    pb.grad(lambda x: np.sum(in_state(x)))(100 * X)
    np.testing.assert_allclose(y, 2 * X)
    np.testing.assert_allclose(x_bar, np.full_like(X, 2.0))


def test_needed_says_which_cotangents_will_be_asked_for():
    seen = []

    @pb.rule.stateful
    def product(signature):
        class Product:
            def forward(self, visit, a, b):
                seen.append(visit.needed)
                visit.b = visit.save(b)
                return a * b

            def pullback(self, visit, y_bar):
                return y_bar * visit.b, None

        return Product()

    np.testing.assert_array_equal(pb.grad(lambda a, b: np.sum(product(a, b)))(X, X), X)
    assert seen == [(True, False)]
    with pytest.raises(
        pb.errors.DifferentiationError, match="product gave None for operand 1, whose gradient is needed"
    ):
        pb.grad(lambda a, b: np.sum(product(a, b)), wrt=1)(X, X)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda y_bar: (y_bar, y_bar), "gave 2 cotangents for 1 operands"),
        (lambda y_bar: (y_bar[1:],), r"gave a cotangent of shape (5,) for operand 0 of shape (6,)"),
    ],
)
def test_cotangents_that_do_not_fit_are_refused(answer, message):
    @pb.rule.stateful
    def wrong(signature):
        class Wrong:
            def forward(self, visit, x):
                return x + 1

            def pullback(self, visit, y_bar):
                return answer(y_bar)

        return Wrong()

    with pytest.raises(pb.errors.DifferentiationError) as raised:
        pb.grad(lambda x: np.sum(wrong(x)))(X)
    assert message in str(raised.value)


def test_operands_and_results_that_are_no_arrays_are_refused():
    with pytest.raises(TypeError, match="square: operand 0 is a str"):
        square("x")

    @pb.rule.stateful
    def pair(signature):
        class Pair:
            def forward(self, visit, x):
                visit.save(x)
                return x, x

        return Pair()

    with pytest.raises(pb.errors.DifferentiationError, match="pair returned a tuple"):
        pb.grad(lambda x: pair(x))(X)


def test_a_pullback_cannot_be_differentiated():
    _, pullback = pb.vjp(square, X)
    with pytest.raises(pb.errors.DifferentiationError, match="pullback of square cannot be differentiated"):
        pb.grad(lambda y_bar: np.sum(pullback(y_bar)[0]))(X)


def test_checkpoints_linearize_and_jacobians_leave_it_alone_or_refuse_it():
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(pb.checkpoint(square)(np.sin(x))))(X), np.sin(2 * X))
    with pytest.raises(pb.errors.DifferentiationError, match="a stateful rule keeps"):
        pb.linearize(square, X)
    with pytest.raises(pb.errors.DifferentiationError, match="a stateful rule"):
        pb.jacobian(square)(X)


def test_a_rule_that_raises_leaves_no_frames_open():
    @pb.rule.stateful
    def fails(signature):
        class Fails:
            def forward(self, visit, x):
                visit.save(x)
                raise ZeroDivisionError

        return Fails()

    def survives(x):
        try:
            return np.sum(fails(x))
        except ZeroDivisionError:
            return np.sum(square(x))

    np.testing.assert_allclose(pb.grad(survives)(X), 2 * X)


def test_the_oldest_signature_goes_first_when_there_are_too_many():
    built = []

    @pb.rule.stateful
    def counted(signature):
        built.append(signature.types[0].shape)
        return Squares()

    for size in [*range(SIGNATURES_KEPT + 1), 5, 0]:
        counted(np.ones(size))
    assert built == [(size,) for size in [*range(SIGNATURES_KEPT + 1), 0]]
