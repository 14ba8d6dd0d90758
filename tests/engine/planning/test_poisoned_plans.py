"""Random programs in plans whose dead memory is filled with NaN, against the tape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.core.kinds import Linear
from pullback.core.primitive import Primitive
from pullback.errors import GraphError

UNARY = {
    "sin": np.sin,
    "tanh": np.tanh,
    "square": np.square,
    "neg": lambda x: -x,
    "exp of tanh": lambda x: np.exp(np.tanh(x)),
    "log": lambda x: np.log(x * x + 1.5),
    "where": lambda x: np.where(x > 0.1, x * 2, np.sin(x)),
    "maximum": lambda x: np.maximum(x, 0.25),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: pb.nn.softplus(x),
    "times one": lambda x: 1 * x * 1.0,
    "plus itself": lambda x: x + x * x,
    "transposed": np.transpose,
    "in a line": lambda x: np.reshape(x, (-1,)),
    "with an axis": lambda x: np.expand_dims(x, 0),
    "summed": lambda x: np.sum(x, axis=-1, keepdims=True) if np.ndim(x) else x,
    "mean": np.mean,
    "first": lambda x: x[0] if np.ndim(x) and np.shape(x)[0] else x,
    "reversed": lambda x: x[::-1] if np.ndim(x) else x,
    "some": lambda x: x[1:] if np.ndim(x) else x,
    "steeper where large": lambda x: x * 3 if np.sum(x * x) > 4 else x,
}
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (b * b + 1),
    "max": lambda a, b: np.maximum(a, b * 1.01 + 0.003),
    "matmul": lambda a, b: a @ b,
}


@st.composite
def programs(draw):
    """Steps that name an operation and earlier values; a step whose shapes do not fit is left out when it runs."""
    steps = []
    for position in range(draw(st.integers(2, 12))):
        operand = st.integers(0, position + 1)
        if draw(st.booleans()):
            steps.append((draw(st.sampled_from(sorted(UNARY))), (draw(operand),)))
        else:
            steps.append((draw(st.sampled_from(sorted(BINARY))), (draw(operand), draw(operand))))
    return steps, draw(st.lists(st.integers(0, len(steps) + 1), min_size=1, max_size=3))


def run(program, x, w):
    steps, outputs = program
    values = [x, w]
    for name, operands in steps:
        chosen = [values[operand] for operand in operands]
        values.append(_applied(name, chosen))
    return sum(np.sum(np.tanh(values[output])) for output in outputs)


def _applied(name, operands):
    shapes = [np.shape(operand) for operand in operands]
    if name in UNARY:
        return UNARY[name](operands[0]) if len(shapes[0]) < 4 else operands[0]
    fits = _fits_matmul(*shapes) if name == "matmul" else _fits_broadcast(*shapes)
    return BINARY[name](*operands) if fits else operands[0]


def _fits_matmul(a, b):
    return len(a) in (1, 2) and len(b) in (1, 2) and a[-1] == b[0]


def _fits_broadcast(a, b):
    try:
        return len(np.broadcast_shapes(a, b)) < 4
    except ValueError:
        return False


SHAPES = st.sampled_from([(3, 4), (4,), (3, 1), (), (4, 3), (1,), (0, 3)])


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("tier", ["fused", "stateful"])
@settings(max_examples=60, deadline=None)
@given(program=programs(), x_shape=SHAPES, w_shape=SHAPES, seed=st.integers(0, 1000), layout=st.sampled_from("CFS"))
def test_no_plan_reads_dead_memory_or_writes_to_its_arguments(tier, program, x_shape, w_shape, seed, layout):
    rng = np.random.default_rng(seed)
    x, w = (_laid_out(rng.normal(size=shape), layout) for shape in (x_shape, w_shape))

    def function(x, w, program=program):
        return run(program, x, w)

    gradient = pb.value_and_grad(function, wrt=(0, 1))
    with np.errstate(all="ignore"):
        expected_value, expected = gradient(x, w)
        with pb.debug.poisoning():
            plan = pb.compile(gradient, tier=tier)
            for _ in range(2):
                value, gradients = plan(x, w)
                np.testing.assert_allclose(value, expected_value, rtol=1e-10)
                for ours, theirs in zip(gradients, expected, strict=True):
                    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)
            assert plan.summary()["fallbacks"] == []
            y, pullback = pb.compile(function, tier=tier).vjp(x, w)
            np.testing.assert_allclose(y, expected_value, rtol=1e-10)
            for ours, theirs in zip(pullback(1.0), expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


def _laid_out(x, layout):
    if x.ndim == 0:
        return x
    if layout == "S":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    return np.asarray(x, order=layout)


@pytest.mark.parametrize("tier", ["fused", "stateful"])
def test_a_layer_and_a_restored_product_survive_poison(tier):
    rng = np.random.default_rng(0)
    w, x, b = rng.normal(size=(4, 5)), rng.normal(size=(5, 3)), rng.normal(size=4)
    c = np.full((4, 3), 9.0)

    def loss(w, x, b, c):
        return np.sum(pb.nn.dense_bias_act(w, x, b, "gelu") * pb.inplace.matmul(c, w, x))

    gradient = pb.grad(loss, wrt=(0, 1, 2))
    with pb.debug.poisoning():
        plan = pb.compile(gradient, tier=tier)
        for _ in range(2):
            for ours, theirs in zip(plan(w, x, b, c), gradient(w, x, b, c), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    np.testing.assert_array_equal(c, 9.0)
    assert plan.summary()["fallbacks"] == []


def test_a_rule_that_gives_memory_of_its_operand_unsaid_is_found_out():
    lying = Linear("lying", lambda x: x[:], lambda type_: type_, lambda v, x: v)
    try:
        with pb.debug.poisoning(), pytest.raises(GraphError, match="lying gave memory of an operand"):
            pb.compile(lambda x: np.sum(lying(np.tanh(x)) * 2), tier="fused")(np.ones(3))
    finally:
        Primitive.table.pop("lying")


def test_a_plan_made_outside_is_not_run_inside():
    plan = pb.compile(np.tanh, tier="fused")
    plan(np.ones(3))
    with pb.debug.poisoning():
        plan(np.ones(3))
    assert len(plan._families) == 2
