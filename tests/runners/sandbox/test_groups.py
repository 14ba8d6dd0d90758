"""Control groups of jobs: real ones, where the machine lets this process make some."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pullback_runners.sandbox.bubblewrap import SandboxView
from pullback_runners.sandbox.groups import groups_of_agent
from pullback_runners.sandbox.isolation import Isolation
from pullback_runners.sandbox.limits import Limits

HERE = groups_of_agent(Path(__file__))
pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(HERE is None, reason="NO JOB IS TRIED IN A CONTROL GROUP: this machine lets nobody make one"),
]

DAEMON = """
import os, sys, time
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(write, str(os.getpid()).encode())
        os.closerange(0, 3)  # which who waits for its parent reads to the end
        time.sleep(1000)
    os._exit(0)
print(os.read(read, 100).decode(), flush=True)
"""


@pytest.fixture
def groups(tmp_path):
    return groups_of_agent(tmp_path)


def _pids(groups):
    return [int(each) for each in (groups.own / "cgroup.procs").read_text().split()]


def _daemon():
    """Start a process that leaves one behind, wait for its end, and return the one that is left."""
    done = subprocess.run([sys.executable, "-I", "-c", DAEMON], check=True, capture_output=True, text=True)
    return psutil.Process(int(done.stdout))


def test_a_process_that_left_its_parents_is_ended_with_the_group(groups):
    with groups.begin(Limits()) as group:
        left = _daemon()
    assert left.is_running()
    group.end()
    assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE
    assert not group.place.exists()
    assert psutil.Process().pid in _pids(groups)


def test_what_an_agent_that_was_killed_has_left_is_ended_by_its_successor(groups, tmp_path):
    with groups.begin(Limits()):
        left = _daemon()
    successor = groups_of_agent(tmp_path)
    with successor.begin(Limits()) as group:
        assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE
    group.end()


def test_agents_of_two_folders_do_not_end_each_others_jobs(groups, tmp_path):
    with groups.begin(Limits()) as group:
        left = _daemon()
    other = groups_of_agent(tmp_path / "other")
    with other.begin(Limits()) as another:
        pass
    another.end()
    assert left.is_running()
    group.end()


def test_a_job_that_is_ended_leaves_no_daemon_at_any_level(groups, tmp_path):
    isolation = Isolation("user", groups=groups)
    confined = isolation.start(
        [sys.executable, "-I", "-c", DAEMON], SandboxView(tmp_path), environment={}, stdout=subprocess.PIPE
    )
    written, _ = confined.process.communicate(timeout=60)
    left = psutil.Process(int(written))
    assert left.is_running()
    confined.end()
    assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE


def test_the_fleet_is_told_what_the_kernel_does(groups):
    assert Isolation("none", groups=groups).labels() == {}
    assert Isolation("sandbox").labels() == {"isolation": "sandbox", "cgroup": "none"}
    expected = "limits" if groups.is_limited else "ends"
    assert Isolation("sandbox", groups=groups).labels() == {"isolation": "sandbox", "cgroup": expected}


@pytest.mark.skipif(
    HERE is not None and not HERE.is_limited,
    reason="NO JOB IS TRIED WITH LIMITS OF THE KERNEL: memory and pids are not given to cgroup v2 of this machine",
)
def test_the_kernel_ends_a_job_that_takes_more_memory_than_its_limit_and_refuses_processes(groups):
    with groups.begin(Limits(memory_bytes=64 << 20, processes=20)) as group:
        hog = subprocess.run([sys.executable, "-I", "-c", "x = b'x' * (200 << 20)"], check=False)
        assert hog.returncode == -9
        assert "more memory than its limit of 0.1 GiB" in group.trouble()
        forks = "import os\nfor n in range(100):\n    if os.fork() == 0:\n        os.read(0, 1)"
        forker = subprocess.run([sys.executable, "-I", "-c", forks], check=False, stderr=subprocess.PIPE)
        assert b"BlockingIOError" in forker.stderr
    group.end()
    assert not group.place.exists()
