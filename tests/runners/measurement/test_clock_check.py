import pytest

from pullback_runners.measurement import clock_check


def clock_complaint(stated_s, calls, turns_s, delays_s=None, **given):
    """The complaint; where nothing waited for a CPU unless it is said."""
    return clock_check.clock_complaint(stated_s, calls, turns_s, delays_s or [0.0] * len(turns_s), **given)


@pytest.mark.parametrize(
    ("stated_s", "calls", "turns_s"),
    [
        ([1e-6] * 20, 2000, [2.1e-3] * 20),  # the way of an order is a twentieth
        ([1e-3] * 20, 2, [3.5e-3] * 20),  # the first call finds empty caches
        ([5e-3] * 20, 1, [1.1e-2] * 20),
        ([1e-6] * 20, 2000, [2.1e-3] * 6 + [0.5] * 14),  # busy: most turns waited for a CPU
        ([1e-9] * 7, 2, [3.1e-3] * 7),  # too few to tell
        ([1e-3], 2, []),  # turns that nobody timed
    ],
)
def test_honest_times_are_believed(stated_s, calls, turns_s):
    assert clock_complaint(stated_s, calls, turns_s) is None


@pytest.mark.parametrize(
    ("stated_s", "calls", "turns_s", "said"),
    [
        ([1e-9] * 20, 2000, [2.1e-3] * 20, "stated 1e-09 s a call where the coordinator's clock says 1.05e-06"),
        ([0.4e-6] * 20, 2000, [2.1e-3] * 20, "clock is wrong"),
        ([1e-6] * 6 + [1e-9] * 14, 2000, [2.1e-3] * 20, "clock is wrong"),
        ([0.0] * 8, 1, [2e-3] * 8, "clock is wrong"),
        ([-1.0] * 8, 1, [2e-3] * 8, "clock is wrong"),
        ([1e-3] * 20, 2, [1e-3] * 20, "stated 0.04 s in turns that took 0.02 s by the coordinator's clock"),
    ],
)
def test_times_that_cannot_be_are_named_with_both_clocks(stated_s, calls, turns_s, said):
    assert said in clock_complaint(stated_s, calls, turns_s)


def test_threads_spend_more_than_the_clock_of_the_wall_where_they_have_cpus():
    assert clock_complaint([3e-3] * 8, 1, [4e-3] * 8, cpus=4) is None


def test_a_process_that_waited_filled_caches_in_its_turns_and_one_that_waits_for_something_is_still_named():
    assert clock_complaint([4.72e-5] * 20, 41, [9.48e-5 * 42] * 20, waiting=0.42) is None
    assert "waits for something" in clock_complaint([4.72e-5] * 20, 41, [9.48e-5 * 42] * 20, waiting=0.05)
    assert "waits for something" in clock_complaint([1e-6] * 20, 41, [9.48e-5 * 42] * 20, waiting=0.42)


def test_what_processes_waited_for_a_cpu_is_taken_off_what_they_should_have_stated_only():
    # The coordinator waited while the worker ran, or both waited at once: what is left of a turn is less than was stated.
    assert clock_complaint([1e-3] * 20, 2, [3.2e-3] * 20, [3.1e-3] * 20) is None
    one_stall = [3.2e-3] * 19 + [0.2]
    assert clock_complaint([1e-3] * 19 + [0.1], 2, one_stall, [0.0] * 19 + [0.4], cpus=2) is None
    # A turn that waited long says how long the calls took without it.
    assert clock_complaint([1e-3] * 20, 2, [3.2e-2] * 20, [2.9e-2] * 20) is None
    assert "waits for something" in clock_complaint([1e-3] * 20, 2, [3.2e-2] * 20, [1e-3] * 20)
    # And waiting is no excuse for stating more than the whole turn.
    assert "clock is wrong" in clock_complaint([1e-2] * 20, 2, [3.2e-3] * 20, [3.1e-3] * 20)


WARM = [1e-3] * 20


def beside(**stated):
    """The complaint about times beside the wall's, of two stretches of ten calls of a millisecond."""
    usual = {"host_time": [1e-4] * 2, "device_time": [9e-4] * 2, "time_cold": [1.1e-3] * 2}
    return clock_check.complaint_beside(usual | stated, 10, 2 * (10 * 1e-3 + 10 * 1.1e-3 + 5e-3), WARM)


def test_other_times_of_a_call_may_be_a_small_part_of_it_and_unknown():
    assert beside() is None
    assert beside(device_time=[1e-9] * 2, host_time=[1e-9] * 2) is None
    assert clock_check.complaint_beside({"host_time": [1e-4]}, 10, 1e-2, WARM) is None


@pytest.mark.parametrize(
    ("metric", "seconds", "said"),
    [
        ("host_time", 3e-3, "stated 0.082 s of calls in answers that took 0.052 s by the coordinator's clock"),
        ("device_time", 3e-3, "stated 0.082 s of calls in answers that took 0.052 s by the coordinator's clock"),
        ("time_cold", 5e-3, "by the coordinator's clock: its clock is wrong"),
        ("time_cold", 4e-4, "stated 0.0004 s a call with a cold cache and 0.001 s with a warm one"),
    ],
)
def test_other_times_of_a_call_that_cannot_be_are_named(metric, seconds, said):
    assert said in beside(**{metric: [seconds] * 2})
