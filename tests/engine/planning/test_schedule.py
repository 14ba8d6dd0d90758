"""Memory of a plan: who lives where, and that nobody is overwritten while alive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb
from pullback.passes.pipeline import Stages, simplify
from pullback.planning.liveness import analyse
from pullback.planning.schedule import Placement, plan_memory


def schedule_of(function, *args):
    return plan_memory(simplify(pb.trace(function)(*args).graph, Stages()))


X = np.ones((3, 3))


def test_a_chain_lives_in_one_buffer():
    schedule = schedule_of(lambda x: np.tanh(np.exp(x) + 1), X)
    assert len(schedule.buffers) == 1
    assert [step.placement for step in schedule.steps] == [Placement.FRESH, Placement.IN_PLACE, Placement.IN_PLACE]


def test_inputs_and_captures_are_never_written_to():
    captured = np.ones((3, 3))
    schedule = schedule_of(lambda x: (x + captured) * (captured - x), X)
    assert [step.placement for step in schedule.steps] == [Placement.FRESH, Placement.FRESH, Placement.IN_PLACE]


def test_a_value_that_a_view_still_needs_is_not_overwritten():
    def function(x):
        y = np.exp(x)
        return np.tanh(y) + y.T

    schedule = schedule_of(function, X)
    tanh = next(step for step in schedule.steps if step.node.primitive.name == "tanh")
    assert tanh.placement is Placement.FRESH


def test_an_operand_read_through_two_shapes_is_not_overwritten():
    def function(x):
        y = np.exp(x)
        return y * y.T

    schedule = schedule_of(function, X)
    assert schedule.steps[-1].placement is Placement.FRESH


@pytest.mark.parametrize(
    ("function", "copied"),
    [
        (lambda x: x, True),
        (lambda x: x.T, True),
        (lambda x: np.exp(x), False),
        (lambda x: np.exp(x).T, False),
        (lambda x: np.broadcast_to(np.exp(x), (2, 3, 3)), True),
    ],
)
def test_what_is_returned_has_memory_of_its_own(function, copied):
    assert schedule_of(function, X).copied_outputs == (copied,)
    result = pb.compile(function, tier="fused")(X)
    np.testing.assert_array_equal(result, function(X))
    assert result.flags.writeable
    assert not np.may_share_memory(result, X)


UNARY = (np.tanh, np.exp, np.sin, lambda x: -x, lambda x: x.T, lambda x: x * 0.5, lambda x: x**2)
BINARY = (np.add, np.multiply, np.subtract, np.matmul, np.maximum)


@st.composite
def programs(draw):
    """Straight-line programs over 3x3 matrices: each step names an operation and earlier values."""
    steps = []
    for position in range(draw(st.integers(2, 10))):
        if draw(st.booleans()):
            steps.append((draw(st.sampled_from(UNARY)), (draw(st.integers(0, position)),)))
        else:
            steps.append(
                (draw(st.sampled_from(BINARY)), (draw(st.integers(0, position)), draw(st.integers(0, position))))
            )
    return steps


def run(steps, x):
    values = [x]
    for operation, operands in steps:
        values.append(operation(*(values[operand] for operand in operands)))
    return np.sum(np.tanh(values[-1]) + values[len(values) // 2])


@given(steps=programs(), seed=st.integers(0, 100))
def test_any_program_has_the_same_gradient_in_every_tier_and_leaves_its_input_alone(steps, seed):
    x = np.random.default_rng(seed).normal(size=(3, 3)) * 0.5
    before = x.copy()
    gradient = pb.value_and_grad(_straight(steps))
    with np.errstate(all="ignore"):
        expected = gradient(x)
        plan = pb.compile(gradient, tier="fused")
        value, x_bar = plan(x)
    assert plan.summary()["fallbacks"] == []
    np.testing.assert_allclose(value, expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(x_bar, expected[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(x, before)


def _straight(steps):
    def straight(x):
        return run(steps, x)

    return straight


@given(steps=programs())
def test_no_buffer_is_overwritten_while_a_value_in_it_is_alive(steps):
    schedule = schedule_of(_straight(steps), X)
    liveness = analyse(schedule.graph)
    holder = {}
    for position, step in enumerate(schedule.steps):
        if step.buffer is None:
            continue
        previous = holder.get(step.buffer)
        if previous is not None:
            assert liveness.dies_at(previous, position if step.placement is Placement.IN_PLACE else position - 1)
        holder[step.buffer] = step.node.outputs[0]
