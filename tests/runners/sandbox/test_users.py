import os
import subprocess
import sys
import threading

import psutil
import pytest
from tests.runners.sandbox.conftest import USER

from pullback_runners.errors import UsageError
from pullback_runners.sandbox.isolation import isolated
from pullback_runners.sandbox.users import BuildUser

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of other users")

SPY = """
import os, subprocess, sys
data = {data!r}
def reads(path):
    try:
        return bool(os.listdir(path) if os.path.isdir(path) else open(path).read())
    except OSError:
        return False
job = os.environ["HOME"].removesuffix("/work")
secrets = [data + "/token", data + "/spool", data + "/jobs", job, job + "/attempt.json"]
print("runs as", os.getuid(), "and reads", [path for path in secrets if reads(path)])
print("sees", [name for name in os.environ if "TOKEN" in name])
subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL)
"""


def _of_the_user():
    return [each for each in psutil.process_iter(["uids", "cmdline"]) if int(USER) in each.info["uids"]]


def test_a_build_user_builds_and_measures_reads_no_secret_and_leaves_no_process(job, data):
    answer = job("user", build=SPY.format(data=str(data)))
    (case,) = answer["report"]["cases"]
    assert [each["error"] for each in case["variants"]] == [None, None]
    assert f"runs as {USER} and reads []" in answer["log"]
    assert "sees []" in answer["log"]
    assert answer["owner"] == int(USER)
    assert _of_the_user() == []


KILLER = """
import os
print(flush=True)
while True:
    try:
        os.kill(-1, 9)
    except ProcessLookupError:
        pass
"""


def test_a_process_that_ends_all_others_of_its_user_is_ended():
    user = BuildUser.named(USER)
    as_user = {**user.process(), "cwd": "/", "start_new_session": True, "stdout": subprocess.PIPE}
    with subprocess.Popen(["python3", "-I", "-c", KILLER], **as_user) as killer:
        try:
            killer.stdout.readline()
            threading.Thread(target=killer.wait).start()
            assert user.end_all()
            assert killer.wait(10) == -9
        finally:
            killer.kill()
    assert _of_the_user() == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no-such-user", "this machine has no such user; `useradd --system no-such-user` makes it"),
        ("root", "root can read everything; name a user of its own for jobs"),
        ("0", "root can read everything"),
    ],
)
def test_a_user_that_cannot_be_had_is_refused(name, said, data):
    with pytest.raises(UsageError, match=f"--build-user {name}: {said}"), isolated(data, "user", name):
        pass


def test_an_agent_of_no_root_is_told_to_start_as_root(data, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="only root can start processes of another user"), isolated(data, "user", USER):
        pass


def test_a_user_who_cannot_run_pullback_is_refused(data, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with (
        pytest.raises(UsageError, match=f"{USER}: {tmp_path}/python cannot be started .*where the jobs can run them"),
        isolated(data, "user", USER),
    ):
        pass


@pytest.mark.parametrize(
    ("mode", "readable", "said"), [(0o644, "/", "it can read .*/token"), (0o600, "/root", "it cannot read /root")]
)
def test_what_must_be_secret_and_what_must_not_is_tried(data, command, mode, readable, said):
    (data / "token").chmod(mode)
    (python, *_), environment = command
    program = f"""
from pathlib import Path
from pullback_runners.sandbox.isolation import isolated
with isolated(Path({str(data)!r}), "user", {USER!r}, readable=[Path({readable!r})]):
    pass
"""
    done = subprocess.run([python, "-P", "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("pullback_runners.errors.UsageError: --build-user")
    assert said.replace(".*", str(data)) in last


def test_two_agents_do_not_share_a_build_user(data, command):
    (python, *_), environment = command
    program = f"""
from pathlib import Path
from pullback_runners.sandbox.isolation import isolated
with isolated(Path({str(data)!r}), "user", {USER!r}), isolated(Path({str(data)!r}), "user", {USER!r}):
    pass
"""
    done = subprocess.run([python, "-P", "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert "another agent builds as that user, and ends all its processes; name another one" in done.stderr


def test_without_isolation_nothing_is_changed(data):
    with isolated(data, "none") as isolation:
        assert isolation.user is None
    assert sorted(each.name for each in data.iterdir()) == ["token"]


def test_the_level_of_a_user_wants_its_name(data):
    with pytest.raises(UsageError, match=r"--isolation user: name the user that runs jobs.*--build-user 61234"):
        isolated(data, "user").__enter__()
