import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from pullback_runners.agent.process_mark import ProcessMark, end_politely, end_trees

_FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def family():
    """A process that leads a group and has a child in it."""
    parent = subprocess.Popen([sys.executable, "-c", _FAMILY], stdout=subprocess.PIPE, start_new_session=True)
    child_pid = int(parent.stdout.readline())
    yield parent, child_pid
    for pid in (parent.pid, child_pid):
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()


def _gone(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_marked_process_ends_with_its_children(family):
    parent, child_pid = family
    assert end_trees([ProcessMark.of(parent.pid)], grace_s=5) == [parent.pid]
    assert _gone(parent.pid)
    assert _gone(child_pid)


def test_orphans_are_found_by_the_group_their_leader_left(family):
    parent, child_pid = family
    mark = ProcessMark.of(parent.pid)
    orphan_group = os.getpgid(child_pid)
    assert orphan_group == mark.pid
    end_trees([mark], grace_s=5)
    assert _gone(child_pid)


def test_a_process_that_ignores_the_request_is_killed():
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE)
    process.stdout.readline()
    started = time.monotonic()
    assert end_politely(ProcessMark.of(process.pid), grace_s=0.3)
    assert process.wait() == -signal.SIGKILL
    assert time.monotonic() - started < 5
    process.stdout.close()


def test_a_clock_that_is_set_makes_no_process_another(family, monkeypatch):
    parent, child_pid = family
    mark = ProcessMark.of(parent.pid)
    real = psutil.Process.create_time
    monkeypatch.setattr(
        psutil.Process, "create_time", lambda self: real(self) + 21
    )  # what psutil says after such a step
    assert mark.process().pid == parent.pid
    assert end_trees([mark], grace_s=5) == [parent.pid]
    assert _gone(child_pid)


@pytest.mark.skipif(sys.platform != "linux", reason="boots are told apart on Linux")
def test_a_process_of_another_boot_is_not_the_one_that_was_marked(family):
    parent, _ = family
    assert replace(ProcessMark.of(parent.pid), boot="another").process() is None


def test_marks_of_an_earlier_release_are_compared_by_the_clock(family):
    parent, _ = family
    told = {"pid": parent.pid, "started": psutil.Process(parent.pid).create_time()}
    assert ProcessMark.from_json(told).process().pid == parent.pid
    assert ProcessMark.from_json({**told, "started": told["started"] + 21}).process() is None


def test_another_process_with_the_same_number_is_left_alone(family):
    parent, _ = family
    stale = replace(ProcessMark.of(parent.pid), started=1.0)
    assert stale.process() is None
    assert end_trees([stale], grace_s=1) == []
    assert parent.poll() is None
