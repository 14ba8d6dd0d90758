"""Pauses of the garbage collector."""

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from pullback.backends.gc_pause import collecting_later


@pytest.fixture(autouse=True)
def _enabled():
    gc.enable()
    yield
    gc.enable()


def test_the_first_of_two_threads_to_leave_does_not_turn_it_on_under_the_second():
    is_inside, may_leave = threading.Event(), threading.Event()

    def stay():
        with collecting_later():
            is_inside.set()
            may_leave.wait()
            return gc.isenabled()

    with ThreadPoolExecutor(1) as thread:
        try:
            with collecting_later():
                second = thread.submit(stay)
                is_inside.wait()
            assert not gc.isenabled()
        finally:
            may_leave.set()
        assert second.result() is False
    assert gc.isenabled()


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_as_it_was_behind_blocks_within_blocks_and_behind_an_error(enabled):
    (gc.enable if enabled else gc.disable)()
    with suppress(ZeroDivisionError), collecting_later():
        with collecting_later():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled() is enabled


def test_a_fork_collects_though_another_thread_paused_it():
    inside, leave = threading.Event(), threading.Event()

    def pause():
        with collecting_later():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=pause)
    thread.start()
    try:
        assert inside.wait(60)
        pid = os.fork()
        if not pid:
            os._exit(int(not gc.isenabled()))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        leave.set()
        thread.join()
