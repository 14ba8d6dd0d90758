import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")

_CHILD = "import os, sys, time; from pullback_runners.agent.parent_death import die_with_parent; {call}; print(os.getpid(), flush=True); time.sleep(60)"


def test_a_child_dies_when_its_parent_is_killed():
    child = _CHILD.format(call="die_with_parent(int(sys.argv[1]))")
    parent_program = f"import os, subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}, str(os.getpid())])"
    parent = subprocess.Popen([sys.executable, "-c", parent_program], stdout=subprocess.PIPE)
    child_pid = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    while psutil.pid_exists(child_pid):
        time.sleep(0.02)
    parent.stdout.close()


def test_a_child_whose_parent_is_already_gone_ends_at_once():
    done = subprocess.run([sys.executable, "-c", _CHILD.format(call="die_with_parent(1)")], timeout=20, check=False)
    assert done.returncode == 1
