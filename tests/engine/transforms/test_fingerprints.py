"""Arrays that were changed between the forward run and the pullback."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.availability import why_not
from pullback.errors import ChangedError
from pullback.transforms import fingerprints
from pullback.transforms.fingerprints import ARRAYS_WATCHED, SAMPLES, Watch, fingerprint, saved_arrays
from pullback.transforms.linearization import Linearization
from pullback_runners.allocations import ArrayCounter

LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: np.asfortranarray(x),
    "every second": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: x[::-1],
}


def product(x, w):
    return np.sum(np.sin(x) * w)


@pytest.mark.parametrize("shape", [(3,), (50, 40), (100_000,), ()], ids=str)
@pytest.mark.parametrize("changed", ["x", "w"])
def test_an_argument_that_was_changed_is_named(shape, changed):
    x, w = np.full(shape, 0.5), np.full(shape, 2.0)
    _, pullback = pb.vjp(product, x, w)
    pullback(1.0)
    {"x": x, "w": w}[changed][...] *= 1.5
    with pytest.raises(ChangedError, match=rf"^product: argument {changed} was changed after the function ran"):
        pullback(1.0)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("part", [0, -1, slice(20, 60), (slice(None), 3)], ids=str)
def test_every_layout_and_every_stretch_is_watched(layout, part):
    x = layout(np.arange(10_000.0).reshape(100, 100))
    _, pullback = pb.vjp(lambda x: np.sum(x * x), x)
    x[part] += 1
    with pytest.raises(ChangedError):
        pullback(1.0)


def test_changed_back_it_may_be_called_again():
    x = np.ones(3)
    _, pullback = pb.vjp(lambda x: np.sum(x * x), x)
    x[0] = 2
    with pytest.raises(ChangedError):
        pullback(1.0)
    x[0] = 1
    np.testing.assert_array_equal(pullback(1.0)[0], 2 * np.ones(3))


def test_captured_arrays_and_views_of_arguments_are_watched():
    w, x = np.ones(1000), np.ones((10, 100))
    _, pullback = pb.vjp(lambda x: np.sum(np.reshape(x, (1000,)) ** 2 * w), x)
    w[:] = 2
    with pytest.raises(ChangedError, match=r"an array of shape \(1000,\) and dtype float64 from around it was changed"):
        pullback(1.0)
    w[:] = 1
    x[:] = 2
    with pytest.raises(ChangedError, match="argument x was changed"):
        pullback(1.0)


def test_parts_of_trees_are_named_by_their_argument():
    params = {"w": np.ones(3), "b": np.ones(3)}
    _, pullback = pb.vjp(lambda params, x: np.sum(params["w"] * x + params["b"]), params, np.ones(3))
    params["w"] += 1
    with pytest.raises(ChangedError, match="a part of argument params was changed"):
        pullback(1.0)


def test_what_no_derivative_reads_may_change():
    x, shift, matrix = np.ones(3), np.ones(3), np.ones((3, 3))
    _, pullback = pb.vjp(lambda x: np.sum(np.tanh(matrix @ x + shift)[::-1]), x)
    expected = pullback(1.0)[0]
    x += 1
    shift += 1
    np.testing.assert_array_equal(pullback(1.0)[0], expected)
    matrix += 1
    with pytest.raises(ChangedError):
        pullback(1.0)


def test_what_was_returned_is_the_callers_to_write_to():
    y, pullback = pb.vjp(np.exp, np.ones(3))
    y[:] = 0
    np.testing.assert_allclose(pullback(np.ones(3))[0], np.exp(np.ones(3)))


def test_temporaries_of_the_engine_are_not_watched():
    x = np.ones(100)
    with_temporaries = Linearization(lambda x: np.sum(np.exp(np.sin(x) * np.cos(x)) * np.tanh(x)), (x,))
    assert len(Watch(np.sum, (x,), saved_arrays(with_temporaries.tape.records))) == 1


@pytest.mark.parametrize("tier", pb.TIERS[1:])
def test_a_compiled_pullback_checks_what_its_plan_reads(tier):
    x, w, shift, around = (np.full(300, value) for value in (0.5, 2.0, 1.0, 3.0))
    plan = pb.compile(lambda x, w, shift: np.sum(np.sin(x) * w * around + shift), tier=tier)
    _, pullback = plan.vjp(x, w, shift)
    expected = pullback(1.0)[0]
    shift += 1
    np.testing.assert_array_equal(pullback(1.0)[0], expected)
    for array, called in ((x, "argument x"), (w, "argument w"), (around, "from around it")):
        array[:] += 1
        with pytest.raises(ChangedError, match=called):
            pullback(1.0)
        array[:] -= 1
    np.testing.assert_array_equal(pullback(1.0)[0], expected)
    assert set(plan.pullbacks[False].summary()["fallbacks"]) <= {why_not()}


def test_linearize_checks_too():
    x = np.ones(3)
    _, push = pb.linearize(lambda x: x * x, x)
    push(np.ones(3))
    x[1] = 0
    with pytest.raises(ChangedError, match="argument x was changed"):
        push(np.ones(3))


def test_inputs_of_checkpoints_and_what_they_close_over():
    x, w = np.ones(3), np.ones(3)
    _, pullback = pb.vjp(lambda x: np.sum(pb.checkpoint(lambda x: np.sin(np.sin(x) * w))(x)), x)
    w += 1
    with pytest.raises(ChangedError):
        pullback(1.0)


def test_pullbacks_that_overwrote_one_array_are_called_latest_first():
    c, a, b = np.zeros((4, 4)), np.random.default_rng(0).normal(size=(4, 4)), np.eye(4)
    before = c.tobytes()
    _, first = pb.vjp(lambda a: pb.inplace.matmul(c, a, b), a)
    _, second = pb.vjp(lambda a: pb.inplace.matmul(c, 2.0 * a, b), a)
    with pytest.raises(ChangedError):
        first(np.ones((4, 4)))
    np.testing.assert_array_equal(second(np.ones((4, 4)))[0], 2 * np.ones((4, 4)))
    np.testing.assert_array_equal(first(np.ones((4, 4)))[0], np.ones((4, 4)))
    assert c.tobytes() == before


# --- cost: counted, not timed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("columns", [1, 2, 10])
def test_a_fingerprint_reads_a_bounded_number_of_elements_and_makes_no_array(size, columns):
    x = np.arange(float(size)).reshape(-1, columns)
    fingerprint(x, every_element=False)
    counter = ArrayCounter()
    with counter.window():
        held = fingerprint(x, every_element=False)
    assert counter.read().allocations == 0
    assert len(held) <= x.itemsize * (SAMPLES + 2)


def test_one_pullback_watches_a_bounded_number_of_arrays():
    rows = [np.ones(3) for _ in range(ARRAYS_WATCHED + 50)]
    linear = Linearization(lambda x: sum(np.sum(x * row) for row in rows), (np.ones(3),))
    assert len(Watch(sum, (np.ones(3),), saved_arrays(linear.tape.records))) == ARRAYS_WATCHED


def test_an_array_used_many_times_is_watched_once():
    x, w = np.ones(3), np.ones(3)
    linear = Linearization(lambda x: sum(np.sum(x * w * x) for _ in range(100)), (x,))
    assert len(Watch(sum, (x,), saved_arrays(linear.tape.records))) == 2


def test_grad_takes_no_fingerprints(monkeypatch):
    taken = []
    monkeypatch.setattr(fingerprints, "fingerprint", lambda *args, **keywords: taken.append(1) or b"")
    pb.grad(lambda x: np.sum(x * x))(np.ones(3))
    assert taken == []


# --- every element ------------------------------------------------------------------------------------------------------


def test_checksums_see_a_single_element():
    x = np.ones((300, 301))
    positions = [(i, j) for i in (0, 17, 299) for j in range(0, 301, 50)]
    with pb.debug.checksums():
        _, pullback = pb.vjp(lambda x: np.sum(x * x), x)
    for position in positions:
        x[position] = 2
        with pytest.raises(ChangedError):
            pullback(1.0)
        x[position] = 1
    pullback(1.0)


@pytest.mark.parametrize("value", [np.array(1.0), np.ones((0, 3)), np.ones((3, 4))[:, ::2], np.ones(5, np.complex64)])
def test_checksums_take_any_array(value):
    assert fingerprint(value, every_element=True) == fingerprint(value.copy(), every_element=True)
