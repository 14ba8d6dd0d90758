import os
import signal
import sys
import time

import psutil
import pytest

from pullback_cli.supervision import supervisor as supervising
from pullback_cli.supervision.plan import ProcessPlan
from pullback_cli.supervision.supervisor import CrashLoopError, Supervisor


@pytest.fixture
def started():
    return {}


@pytest.fixture
def said():
    return []


@pytest.fixture
def supervisor(started, said):
    supervisor = Supervisor(said.append, lambda name, mark: started.update({name: mark}))
    yield supervisor
    supervisor.stop()


def _plan(tmp_path, name="version", arguments=("version",)):
    return ProcessPlan(name, arguments, tmp_path / f"{name}.log")


@pytest.fixture
def _sleeping_children(monkeypatch, tmp_path):
    """Stand-in children: the supervisor's business is with processes, not with what they do."""
    script = tmp_path / "pullback_cli.py"
    script.write_text("import sys, time; print('asleep', flush=True); time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(supervising, "COMMAND", (sys.executable, str(script)))


@pytest.mark.usefixtures("_sleeping_children")
def test_a_child_that_was_killed_is_started_again_and_that_is_said(tmp_path, supervisor, started, said):
    supervisor.start([_plan(tmp_path, "api")])
    first = started["api"]
    os.kill(first.pid, signal.SIGKILL)
    _until(lambda: supervisor.check() or started["api"] != first)
    assert started["api"].process() is not None
    assert len(said) == 1
    assert "the api ended unexpectedly (killed by SIGKILL" in said[0]


@pytest.mark.usefixtures("_sleeping_children")
def test_stopping_leaves_no_process(tmp_path, supervisor, started):
    supervisor.start([_plan(tmp_path, "api"), _plan(tmp_path, "worker")])
    supervisor.stop()
    assert [mark.process() for mark in started.values()] == [None, None]
    assert not psutil.pid_exists(started["api"].pid)


def test_a_child_that_keeps_dying_is_given_up_with_its_last_output(tmp_path, supervisor):
    supervisor.start([_plan(tmp_path, "agent", ("agent", "--server", "http://127.0.0.1:1", "--label", "wrong"))])
    with pytest.raises(CrashLoopError, match=r"the agent ended .*exit code 2.*name=value"):
        _until(supervisor.check)


def _until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
