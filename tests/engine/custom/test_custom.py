"""pb.primitive: what an author gives, what is derived from it, and what is refused."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.availability import why_not
from pullback.errors import DifferentiationError, NoRuleError, TracingError

TIERS = pytest.mark.parametrize("tier", pb.TIERS)
X = np.linspace(-1.5, 2.0, 7)
LIMIT = 0.8


def softclip_of(**given):
    """limit * tanh(x / limit), with the derivative that a test gives it."""

    @pb.primitive
    def softclip(x, limit):
        return limit * np.tanh(x / limit)

    for kind, maps in given.items():
        register = getattr(softclip, kind)
        register(**maps) if isinstance(maps, dict) else register(maps)
    return softclip


def slope(y, limit):
    return 1 - (y / limit) ** 2


PULLS = {
    "x": lambda y_bar, y, x, limit: y_bar * slope(y, limit),
    "limit": lambda y_bar, y, x, limit: np.sum(y_bar * (y / limit - x / limit * slope(y, limit))),
}
PUSHES = {
    "x": lambda dx, y, x, limit: dx * slope(y, limit),
    "limit": lambda d, y, x, limit: d * (y / limit - x / limit * slope(y, limit)),
}


def joint_pull(needed, y_bar, y, x, limit):
    return tuple(map_(y_bar, y, x, limit) if need else None for need, map_ in zip(needed, PULLS.values(), strict=True))


def joint_push(tangents, y, x, limit):
    return sum(map_(dx, y, x, limit) for dx, map_ in zip(tangents, PUSHES.values(), strict=True) if dx is not None)


GIVEN = {
    "pulls": {"pulls": PULLS},
    "pushes": {"pushes": PUSHES},
    "both": {"pulls": PULLS, "pushes": PUSHES},
    "one pull": {"pull": joint_pull},
    "one push": {"push": joint_push},
}
every_way = pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)


@every_way
def test_both_modes_agree_with_differences_to_the_second_order(given):
    softclip = softclip_of(**given)
    pb.testing.check_grads(lambda x, limit: softclip(x, limit), [X, LIMIT])
    pb.testing.check_grads(lambda x: np.sum(pb.grad(lambda x: np.sum(softclip(x, LIMIT) ** 2))(x)), [X], rtol=1e-4)


@every_way
@TIERS
def test_it_is_like_the_function_written_out(given, tier):
    softclip = softclip_of(**given)

    def of(f):
        return pb.value_and_grad(lambda x, limit: np.sum(np.sin(f(np.cos(x), limit)) * x), wrt=(0, 1))

    want = of(lambda x, limit: limit * np.tanh(x / limit))(X, LIMIT)
    with pb.tier(tier):
        for _ in range(2):
            value, gradients = of(softclip)(X, LIMIT)
    assert value == pytest.approx(want[0])
    for ours, theirs in zip(gradients, want[1], strict=True):
        np.testing.assert_allclose(ours, theirs)


@every_way
def test_batches_and_jacobians(given):
    softclip = softclip_of(**given)
    np.testing.assert_allclose(
        pb.jacobian(lambda x: softclip(x, LIMIT))(X), np.diag(slope(softclip(X, LIMIT), LIMIT)), atol=1e-12
    )
    np.testing.assert_allclose(
        pb.vmap(softclip, in_axes=(0, None))(np.stack([X, 2 * X]), LIMIT)[1], softclip(2 * X, LIMIT)
    )


def test_only_what_is_needed_is_pulled():
    called = []
    softclip = softclip_of(
        pulls={name: lambda *args, name=name: called.append(name) or PULLS[name](*args) for name in PULLS}
    )
    pb.grad(lambda x: np.sum(softclip(x, LIMIT)))(X)
    assert called == ["x"]


def test_operands_may_be_given_by_keyword_and_by_default():
    @pb.primitive
    def scaled(x, rate=2.0, *, power=1):
        return x**power * rate

    scaled.pulls(
        lambda y_bar, y, x, rate, *, power=1: y_bar * power * x ** (power - 1) * rate,
        rate=lambda y_bar, y, x, rate, *, power=1: np.sum(y_bar * x**power),
    )
    pb.testing.check_grads(lambda x, r: scaled(x, rate=r, power=3), [X, 1.5])
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(scaled(x)))(X), np.full_like(X, 2.0))


def test_a_batch_of_its_own_replaces_the_loop():
    shapes = []
    softclip = softclip_of(pulls=PULLS)

    @softclip.batch
    def _(batched, x, limit):
        shapes.append((batched, np.shape(x)))
        return limit * np.tanh(x / limit)

    pb.vmap(softclip, in_axes=(0, None))(np.ones((4, 3)), LIMIT)
    assert shapes == [((True, False), (4, 3))]


def test_trees_of_operands():
    @pb.primitive
    def weighted(params, x):
        return params["w"] * x + params["b"]

    weighted.pulls(
        params=lambda y_bar, y, params, x: {"w": np.sum(y_bar * x), "b": np.sum(y_bar)},
        x=lambda y_bar, y, params, x: y_bar * params["w"],
    )
    params = {"w": 2.0, "b": -1.0}
    gradient = pb.grad(lambda params: np.sum(weighted(params, X) ** 2))(params)
    want = pb.grad(lambda params: np.sum((params["w"] * X + params["b"]) ** 2))(params)
    assert gradient == pytest.approx(want)
    one = pb.grad(lambda w: np.sum(weighted({"w": w, "b": -1.0}, X) ** 2))(2.0)
    assert one == pytest.approx(want["w"])
    assert pb.jvp(lambda w: np.sum(weighted({"w": w, "b": -1.0}, X) ** 2), (2.0,), (1.0,))[1] == pytest.approx(
        want["w"]
    )


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_several_results(mode):
    @pb.primitive(results=2)
    def polar(x, y):
        return np.sqrt(x * x + y * y), x / y

    if mode == "pull":

        @polar.pull
        def _(needed, bars, results, x, y):
            r_bar, q_bar = bars
            return r_bar * x / results[0] + q_bar / y, r_bar * y / results[0] - q_bar * x / y**2

    else:

        @polar.push
        def _(tangents, results, x, y):
            dx, dy = (0.0 if t is None else t for t in tangents)
            return (x * dx + y * dy) / results[0], dx / y - x * dy / y**2

    a, b = np.linspace(0.5, 1.0, 4), np.linspace(1.0, 2.0, 4)
    pb.testing.check_grads(lambda x, y: polar(x, y)[0] * polar(x, y)[1], [a, b])
    pb.testing.check_grads(lambda x, y: polar(x, y)[1], [a, b])


def test_complex_operands():
    @pb.primitive
    def cube(z):
        return z**3

    cube.pulls(lambda y_bar, y, z: y_bar * 3 * z**2)
    z = np.array([1.0 + 2j, -0.5j])
    np.testing.assert_allclose(pb.vjp(cube, z)[1](np.ones(2))[0], 3 * z**2)
    np.testing.assert_allclose(pb.jvp(cube, (z,), (1j * z,))[1], 3j * z**3)


# --- plans --------------------------------------------------------------------------------------------------------------


def test_with_infer_it_is_part_of_a_plan():
    calls = []

    @pb.primitive
    def doubled(x):
        calls.append(1)
        return 2 * x

    doubled.pulls(x=lambda y_bar, y, x: 2 * y_bar)

    @doubled.infer
    def _(x):
        return x.shape, x.dtype

    plan = pb.compile(pb.grad(lambda x: np.sum(doubled(x) * x)), tier="fused")
    for _ in range(3):
        np.testing.assert_allclose(plan(X), 4 * X)
    assert plan.summary()["fallbacks"] == []
    assert len(calls) == 3


@pytest.mark.parametrize("tier", pb.TIERS[1:])
def test_without_infer_the_type_is_that_of_the_values_the_plan_is_made_for(tier):
    calls = []

    @pb.primitive
    def halves(x):
        calls.append(1)
        return x[: len(x) // 2].astype(np.float32)

    @halves.pull
    def _(needed, y_bar, y, x):
        return (np.concatenate([y_bar, np.zeros(len(x) - len(x) // 2)]),)

    plan = pb.compile(pb.grad(lambda x: np.sum(np.tanh(halves(np.sin(x))) * 2.0)), tier=tier)
    want = pb.grad(lambda x: np.sum(np.tanh(np.sin(x)[:3]) * 2.0))(X)
    for _ in range(2):
        np.testing.assert_allclose(plan(X), want, rtol=1e-6)
    said = ["halves has no native form", "halves_pull has no native form"] if tier == "native" else []
    assert {reason.partition(" of ")[0] for reason in plan.summary()["fallbacks"]} <= {*said, why_not()}
    assert len(calls) == 3  # once to see the type


def test_a_type_that_depends_on_values_is_not_taken_for_another():
    @pb.primitive
    def positive_part(x):
        return x[x > 0]

    positive_part.pull(lambda needed, y_bar, y, x: (np.where(x > 0, 1.0, 0.0),))
    plan = pb.compile(pb.value_and_grad(lambda x: np.sum(positive_part(x))), tier="fused")
    plan(X)
    with pytest.raises(TracingError, match=r"positive_part returned f8\[7\], and f8\[4\] when the plan was made"):
        plan(X + 10)


def test_a_plan_reads_anew_what_function_and_rule_take_from_around_them():
    rate = 2.0

    @pb.primitive
    def scaled(x):
        return rate * x

    scaled.pulls(x=lambda y_bar, y, x: rate * y_bar)
    scaled.infer(lambda x: x)
    plan = pb.compile(pb.value_and_grad(lambda x: np.sum(scaled(x))), tier="fused")
    np.testing.assert_allclose(plan(X + 1)[1], 2 * np.ones_like(X))
    rate = 3.0
    value, gradient = plan(X + 1)
    assert value == pytest.approx(3 * np.sum(X + 1))
    np.testing.assert_allclose(gradient, 3 * np.ones_like(X))
    scaled.pulls(x=lambda y_bar, y, x: 5 * y_bar)
    np.testing.assert_allclose(plan(X + 1)[1], 5 * np.ones_like(X))


def test_what_it_returns_may_be_kept_by_its_author():
    kept = []

    @pb.primitive
    def remembered(x):
        kept.append(2 * x)
        return kept[-1]

    remembered.pulls(x=lambda y_bar, y, x: 2 * y_bar)
    remembered.infer(lambda x: x)
    pb.compile(lambda x: np.tanh(remembered(x)), tier="fused")(X)
    np.testing.assert_array_equal(kept[-1], 2 * X)


def test_calls_with_other_options_are_other_calls():
    @pb.primitive
    def power(x, *, n):
        return x**n

    power.pulls(x=lambda y_bar, y, x, *, n: y_bar * n * x ** (n - 1))
    power.infer(lambda x, *, n: x)
    plan = pb.compile(pb.grad(lambda x: np.sum(power(x, n=2) + power(x, n=3))), tier="fused")
    np.testing.assert_allclose(plan(X), 2 * X + 3 * X**2)


# --- what is refused ----------------------------------------------------------------------------------------------------


def test_a_missing_derivative_is_said_where_the_function_is_called():
    softclip = softclip_of(pulls={"x": PULLS["x"]})
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(softclip(x, LIMIT)))(X), slope(softclip(X, LIMIT), LIMIT))
    for transformed in (
        lambda: pb.grad(lambda limit: np.sum(softclip(X, limit)))(LIMIT),
        lambda: pb.jvp(lambda limit: softclip(X, limit), (LIMIT,), (1.0,)),
        lambda: pb.compile(pb.grad(lambda limit: np.sum(softclip(X, limit))), tier="fused")(LIMIT),
    ):
        with pytest.raises(NoRuleError, match=r"softclip has no derivative by limit; .*softclip.pulls\(limit="):
            transformed()


def test_a_derivative_that_is_zero_is_said_to_be():
    softclip = softclip_of(pulls={"x": PULLS["x"], "limit": None})
    assert pb.grad(lambda limit: np.sum(softclip(X, limit)))(LIMIT) == 0.0
    assert np.all(pb.jvp(lambda limit: softclip(X, limit), (LIMIT,), (1.0,))[1] == 0.0)


@pytest.mark.parametrize(
    ("pulls", "message"),
    [
        ({"x": lambda y_bar, y, x, limit: None}, "softclip gave no cotangent for x"),
        ({"x": lambda y_bar, y, x, limit: y_bar[1:]}, r"shape (6,) for an operand of shape (7,)"),
        ({"x": lambda y_bar, y, x, limit: (y_bar, y_bar)}, "not nested like its operand"),
    ],
    ids=["none", "shape", "tree"],
)
def test_cotangents_that_do_not_fit_are_refused(pulls, message):
    with pytest.raises(DifferentiationError) as raised:
        pb.grad(lambda x: np.sum(softclip_of(pulls=pulls)(x, LIMIT)))(X)
    assert message in str(raised.value)


def test_a_pull_that_is_not_linear_has_no_forward_mode_unless_it_is_given():
    @pb.primitive
    def clipped_back(x):
        return x * 1.0

    clipped_back.pulls(x=lambda y_bar, y, x: np.minimum(np.maximum(y_bar, -1.0), 1.0))
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(5 * clipped_back(x)))(X), np.ones_like(X))
    with pytest.raises(DifferentiationError, match=r"its pull is not linear.*; add clipped_back.pushes\("):
        pb.jvp(clipped_back, (X,), (X,))
    clipped_back.pushes(x=lambda dx, y, x: dx)
    np.testing.assert_array_equal(pb.jvp(clipped_back, (X,), (X,))[1], X)


def test_a_pull_that_cannot_be_traced_has_no_forward_mode_unless_it_is_given():
    @pb.primitive
    def cubed(x):
        return x**3

    cubed.pulls(x=lambda y_bar, y, x: np.asarray(y_bar) * 3 * x**2)
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(cubed(x)))(X), 3 * X**2)
    with pytest.raises(DifferentiationError, match=r"cannot be transposed into one .*; add cubed.pushes\("):
        pb.jvp(cubed, (X,), (X,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f("x", 1.0), "softclip: an operand holds a str"),
        (lambda f: f.pulls(limt=None), "softclip has no operand 'limt'; it has x, limit"),
        (lambda f: f.pulls(None, None, None), "softclip has 2 operands, got 3 maps"),
        (lambda f: f(X), "limit"),
    ],
)
def test_wrong_calls_name_the_function_and_what_is_wrong(call, message):
    with pytest.raises(TypeError, match=message):
        call(softclip_of())


def test_options_must_be_constants():
    @pb.primitive
    def power(x, *, n):
        return x**n

    with pytest.raises(TracingError, match="the option n is a ndarray"):
        power(X, n=X)


def test_a_function_that_closes_over_a_traced_value_is_refused():
    def loss(x):
        @pb.primitive
        def inner(y):
            return x * y

        inner.pulls(y=lambda y_bar, out, y: y_bar * x)
        return np.sum(inner(np.ones(7)))

    with pytest.raises(TracingError, match="inner returned a traced value"):
        pb.grad(loss)(X)


def test_a_function_without_a_rule_is_told_about_this_way():
    with pytest.raises(NoRuleError, match=r"pb.primitive"):
        pb.grad(lambda x: np.sum(np.nextafter(x, 1.0)))(X)
