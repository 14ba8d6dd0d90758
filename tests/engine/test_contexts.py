"""Stacks, runs and contexts: LIFO, never shrinking, one thread."""

import gc
import threading

import numpy as np
import pytest

from pullback import contexts
from pullback.contexts import ALIGNMENT, Run, RunContext
from pullback.errors import StateError

F8 = np.dtype(np.float64)


@pytest.fixture
def context():
    with contexts.using(RunContext()) as own:
        yield own


def addresses(frames):
    return [frame.array.__array_interface__["data"][0] for frame in frames]


def test_frames_are_apart_and_aligned(context):
    stack = context.take()
    frames = [stack.push((size,), F8) for size in (1, 100, 3, 1000, 5)]
    for position, frame in enumerate(frames):
        frame.array[...] = position
    assert [frame.array.shape for frame in frames] == [(1,), (100,), (3,), (1000,), (5,)]
    assert all((frame.array == position).all() for position, frame in enumerate(frames))
    assert all(address % ALIGNMENT == 0 for address in addresses(frames))


def test_a_second_sweep_of_the_same_depth_has_the_same_arrays(context):
    stack = context.take()

    def sweep():
        frames = [stack.push((size,), F8) for size in (10, 1000, 7, 5000)]
        arrays = [frame.array for frame in frames]
        for frame in reversed(frames):
            frame.release()
        return arrays

    first = sweep()
    nbytes = context.state_bytes
    assert all(again is array for again, array in zip(sweep(), first, strict=True))
    assert context.state_bytes == nbytes >= 8 * (10 + 1000 + 7 + 5000)


def test_other_sizes_at_the_same_depth_use_the_same_bytes(context):
    stack = context.take()
    for shapes in [((1000,), (10, 10)), ((2, 3), (500,)), ((1000,), (10, 10))]:
        frames = [stack.push(shape, F8) for shape in shapes]
        frames[0].array[...] = 1
        frames[1].array[...] = 2
        assert (frames[0].array == 1).all()
        for frame in reversed(frames):
            frame.release()
    assert context.state_bytes < 2 * 8 * 1100 + 4096


def test_numbers_and_arrays_without_elements_are_kept_too(context):
    run = Run()
    number, nothing = run.save(np.array(2.5)), run.save(np.zeros((0, 3), np.complex64))
    assert number.array == 2.5
    assert nothing.array.shape == (0, 3)


def test_objects_are_refused(context):
    with pytest.raises(StateError, match="dtype object"):
        context.take().push((1,), np.dtype(object))


def test_releasing_twice_or_out_of_order_raises(context):
    stack = context.take()
    first, second = stack.push((1,), F8), stack.push((1,), F8)
    with pytest.raises(StateError, match="out of order"):
        first.release()
    second.release()
    with pytest.raises(StateError, match="twice"):
        second.release()
    with pytest.raises(StateError, match="after the pullback ran"):
        _ = second.array
    first.release()


def test_a_run_that_is_dropped_gives_its_stack_back_empty(context):
    run = Run()
    run.save(np.ones(3))
    assert context.open_frames == 1
    del run
    gc.collect()
    assert context.open_frames == 0
    before = context.state_bytes
    Run().save(np.ones(3))
    assert context.state_bytes == before


def test_runs_that_overlap_have_stacks_of_their_own(context):
    outer, inner = Run(), Run()
    kept = outer.save(np.ones(3))
    inner.save(np.zeros(3))
    outer.save(np.full(3, 2.0))
    inner.close()
    np.testing.assert_array_equal(kept.array, np.ones(3))


def test_a_run_that_is_over_keeps_nothing_more(context):
    run = Run()
    frame = run.save(np.ones(3))
    run.close()
    run.close()
    with pytest.raises(StateError, match="run was released"):
        run.save(np.ones(3))
    with pytest.raises(StateError, match="after the pullback ran"):
        _ = frame.array


def raised_in_a_thread(function):
    caught = []

    def run():
        try:
            function()
        except BaseException as error:  # noqa: BLE001 (whatever it is, the test looks at it)
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return caught


def test_a_context_shared_between_threads_raises(context):
    stack = context.take()
    frame = stack.push((1,), F8)

    def enters():
        with contexts.using(context):
            pass

    for use in (context.take, lambda: stack.push((1,), F8), frame.release, enters):
        (error,) = raised_in_a_thread(use)
        assert isinstance(error, StateError)
        assert "thread" in str(error)
    frame.release()


def test_each_thread_has_a_context_of_its_own():
    seen = []
    assert raised_in_a_thread(lambda: seen.append(contexts.current())) == []
    assert seen[0] is not contexts.current()
