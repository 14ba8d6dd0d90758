"""Processes on a side of a comparison write to their own folder alone, and reach no process of the other one."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pullback_runners.measurement import sides as landlock
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.sides import _ASK_VERSION, _CREATE_RULESET, _call, make_side, on_side
from pullback_runners.measurement.subject import Subject
from pullback_runners.measurement.worker_process import WorkerSettings
from pullback_runners.measurement.zygote_process import Zygotes

needs_landlock = pytest.mark.skipif(
    sys.platform != "linux" or _call(_CREATE_RULESET, None, 0, _ASK_VERSION) < 6,
    reason="NO SIDES ARE TRIED: the kernel has no Landlock that knows signals",
)
SPY = """
import json, os, signal, subprocess, sys, tempfile
from pathlib import Path

other, neighbour = Path(sys.argv[1]), int(sys.argv[2])

def attempt(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    return "done"

def by_a_child():
    done = subprocess.run(["sh", "-c", f"setsid sh -c ': > {other}/by-a-child' && true"], stderr=subprocess.DEVNULL)
    if done.returncode:
        raise PermissionError

print(json.dumps({
    "write": attempt(lambda: (other / "objects" / "known.object").write_text("code")),
    "truncate": attempt(lambda: os.truncate(other / "objects" / "known.object", 0)),
    "remove": attempt(lambda: (other / "objects" / "known.object").unlink()),
    "rename": attempt(lambda: os.rename(other / "objects", other / "moved")),
    "move in": attempt(lambda: (Path("mine").write_text("code"), os.rename("mine", other / "objects" / "mine"))),
    "link": attempt(lambda: os.symlink("/", other / "link")),
    "child": attempt(by_a_child),
    "memory": attempt(lambda: open(f"/proc/{neighbour}/mem", "r+b").close()),
    "signal": attempt(lambda: os.kill(neighbour, signal.SIGSTOP)),
    "above": attempt(lambda: Path("../beside").write_text("")),
    "read": attempt(lambda: (other / "objects" / "known.object").read_text()),
    "own": attempt(lambda: (Path(os.environ["PULLBACK_CACHE_DIR"]) / "new.object").write_text("code")),
    "temporary": attempt(lambda: tempfile.NamedTemporaryFile().close()),
    "nothing": attempt(lambda: Path("/dev/null").write_text("")),
    "own signal": attempt(lambda: os.kill(os.getpid(), 0)),
    "places": [os.environ[name] for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "PULLBACK_CACHE_DIR")] + [os.getcwd()],
}))
"""


@pytest.fixture
def sides():
    """The folders of two sides, outside of what all may write."""
    folder = Path(tempfile.mkdtemp(prefix="pullback-", dir="/var/tmp"))
    for name in ("reference", "candidate"):
        make_side(str(folder / name))
    yield folder / "reference", folder / "candidate"
    shutil.rmtree(folder)


@needs_landlock
def test_a_process_on_a_side_changes_nothing_of_the_other_and_reaches_none_of_its_processes(sides):
    reference, candidate = sides
    waits, _ = on_side([sys.executable, "-c", "print(flush=True); input()"], os.environ, reference)
    with subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as neighbour:
        neighbour.stdout.readline()
        known = reference / "objects" / "known.object"
        known.write_text("its code")
        spy, _ = on_side([sys.executable, "-c", SPY, str(reference), str(neighbour.pid)], os.environ, candidate)
        done = subprocess.run(spy, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        neighbour.communicate(b"\n", timeout=60)
    said = json.loads(done.stdout)
    places = [Path(each) for each in said.pop("places")]
    assert places == [candidate, candidate / "tmp", candidate / "cache", candidate / "objects", candidate]
    may = {"read", "own", "temporary", "nothing", "own signal"}
    assert {what for what, end in said.items() if end == "done"} == may
    assert {end for what, end in said.items() if what not in may} <= {"PermissionError", "OSError"}
    assert (known.read_text(), sorted(each.name for each in reference.iterdir())) == (
        "its code",
        ["cache", "objects", "tmp"],
    )
    assert neighbour.returncode == 0


def test_without_landlock_a_side_has_folders_of_its_own_all_the_same(sides):
    _, candidate = sides
    script = (
        "import os, sys; from pullback_runners.measurement import sides; sides._call = lambda *_: -1; sides.enter_side(sys.argv[1]);"
        "print(os.environ['PULLBACK_CACHE_DIR'])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(candidate)], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str(candidate / "objects")


def test_a_command_that_is_on_no_side_stays_as_it_is():
    assert on_side(["python"], {"LANG": "C"}, None) == (["python"], {"LANG": "C"})


def test_a_side_is_never_made_where_a_commit_left_something(tmp_path):
    (tmp_path / "reference").mkdir()
    with pytest.raises(FileExistsError):
        make_side(str(tmp_path / "reference"))


def test_a_landlock_that_refuses_moves_between_folders_is_not_used(monkeypatch):
    asked = []
    monkeypatch.setattr(landlock, "_call", lambda *call: asked.append(call) or 1)
    landlock._write_alone("/nowhere")
    assert len(asked) == 1


def test_an_installed_module_that_keeps_home_as_it_is_imported_keeps_that_of_its_side(
    sides, tmp_path, monkeypatch, faulty_workloads, sound_case
):
    (tmp_path / "keeps_home.py").write_text("from pathlib import Path\nHOME = Path.home()\n")
    (tmp_path / "commit").mkdir()
    (tmp_path / "commit" / "measured.py").write_text("import keeps_home\n(keeps_home.HOME / 'written').write_text('')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    members = [
        Member("right", role=side.name, subject=Subject((tmp_path / "commit",), ("measured",), side=side))
        for side in sides
    ]
    zygotes = Zygotes(sound_case, members, WorkerSettings([faulty_workloads], modules=["keeps_home"]))
    try:
        assert [worker.answer()["ready"] for worker in zygotes.workers.values()] == [True, True]
    finally:
        zygotes.end()
    assert [(folder / "written").exists() for folder in (*sides, tmp_path)] == [True, True, False]


@needs_landlock
def test_a_commit_s_interpreter_runs_nothing_before_it_is_on_the_side(sides, tmp_path):
    reference, candidate = sides
    (tmp_path / "sitecustomize.py").write_text(
        f"for place in ('{reference}', '{candidate}'):\n"
        "    try:\n        open(place + '/written', 'a').write('x')\n    except OSError:\n        pass"
    )
    variables = {"PYTHONPATH": str(tmp_path), "LONG": "a=b"}
    command, environment = on_side([sys.executable, "-c", "import os; print(os.environ['LONG'])"], variables, candidate)
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == "a=b\n"
    assert not (reference / "written").exists()
    assert (candidate / "written").read_text() == "x"
