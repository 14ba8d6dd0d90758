"""A test that waits for ever fails at its deadline, and those behind it are run."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = """
import asyncio, contextlib, subprocess, threading, time
import pytest

def test_that_waits_for_a_thread():
    threading.Event().wait()

def test_that_waits_for_a_process():
    subprocess.run(["sleep", "60"])

def test_that_tries_again_whatever_happens():
    while True:
        with contextlib.suppress(Exception):
            time.sleep(60)

@pytest.mark.anyio
async def test_that_waits_for_an_event(anyio_backend):
    await asyncio.Event().wait()

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.fixture
def late():
    threading.Event().wait()

def test_that_is_never_set_up(late):
    pass

@pytest.fixture
def left():
    yield
    threading.Event().wait()

def test_that_is_never_torn_down(left):
    pass

@pytest.mark.long(most_s=60)
def test_that_may_take_long():
    time.sleep(1.5)

@pytest.mark.long
def test_of_the_long_ones_that_waits():
    threading.Event().wait()

def test_behind_all_of_them():
    pass
"""


def test_a_test_that_waits_for_ever_fails_and_the_others_are_run(tmp_path):
    (tmp_path / "test_waiting.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text("from tests import deadlines\n\ndeadlines.MOST_S = deadlines.AGAIN_S = 0.5\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = long\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.deadlines", "-p", "anyio.pytest_plugin", "-q", "-rfE"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "5 failed, 3 passed, 2 errors" in done.stdout, done.stdout
    assert done.stdout.count("was not over after 0.5 s; the stack says what it waited for") >= 7
    assert "threading.Event().wait()" in done.stdout
