import os
import subprocess
import sys
import time

import pytest

from pullback_runners.measurement import slices
from pullback_runners.measurement.slices import calibrate_calls, run_delay_ns, time_slice


def spin(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_the_first_call_is_made_and_not_timed():
    calls = []

    def slow_at_first():
        calls.append(None)
        if len(calls) == 1:
            spin(0.05)

    cpu_ns, wall_ns, _ = time_slice(slow_at_first, 3)
    assert len(calls) == 4
    assert cpu_ns < 25_000_000
    assert wall_ns > 0


@pytest.mark.skipif(run_delay_ns() is None, reason="the kernel does not say how long a process waited")
def test_what_a_slice_waited_for_its_cpu_is_its_own():
    """Two processes on one CPU: one of them waits while the other runs, and while it sleeps it does not wait."""
    cpu = max(os.sched_getaffinity(0))
    allowed = os.sched_getaffinity(0)
    rival = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(rival.pid, {cpu})
        os.sched_setaffinity(0, {cpu})
        waited = sum(time_slice(lambda: spin(1e-3), 20).waited_ns for _ in range(20))
        asleep = time_slice(lambda: time.sleep(1e-3), 20)
    finally:
        os.sched_setaffinity(0, allowed)
        rival.kill()
        rival.wait()
    assert waited > 0.2 * 20 * 20e6
    assert asleep.cpu_ns < asleep.wall_ns


@pytest.mark.parametrize(("cpus", "waited"), [(1, 2_000), (2, 5_000)])
def test_who_waits_for_threads_of_its_own_on_one_cpu_waits_for_nobody_else(monkeypatch, cpus, waited):
    delays, threads = iter([1_000, 6_000]), iter([0, 3_000])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    monkeypatch.setattr(slices, "run_delay_ns", lambda: next(delays))
    monkeypatch.setattr(time, "thread_time_ns", lambda: time.process_time_ns() - next(threads))
    monkeypatch.setattr(time, "process_time_ns", lambda: 50_000)
    assert time_slice(lambda: None, 3).waited_ns == waited


def test_calls_fill_a_slice():
    calls = calibrate_calls(lambda: spin(100e-6), slice_ns=2_000_000)
    assert 8 <= calls <= 21


def test_a_disturbed_slice_does_not_decide_how_many_calls_fill_one():
    lengths_s = iter([100e-6, 1.5e-3])  # the first call of a slice is not timed, the second one is
    assert calibrate_calls(lambda: spin(next(lengths_s, 100e-6)), slice_ns=2_000_000) >= 8


def test_a_call_longer_than_a_slice_fills_more_than_one():
    assert 0.02 < calibrate_calls(lambda: spin(5e-3), slice_ns=1_000_000) <= 0.2


def test_run_delay_is_known_or_none():
    assert run_delay_ns() is None or run_delay_ns() >= 0


def test_a_call_that_waits_fills_a_slice_by_the_walls_clock():
    assert calibrate_calls(lambda: time.sleep(2e-3), slice_ns=1_000_000, clock="wall") <= 0.5
