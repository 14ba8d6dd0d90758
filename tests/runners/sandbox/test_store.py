"""The caches of jobs, as an agent keeps them."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.runners.sandbox.conftest import USER

from pullback_runners.agent.job_folder import JobFolder
from pullback_runners.sandbox.store import ENVIRONMENTS, Store, build_of, remove_tree, secret_key

SHA, NAME = "a" * 40, "0123456789abcdef"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "kept", [tmp_path / "kept"], b"key")


@pytest.fixture
def step(tmp_path):
    """A step of a job, which leaves some finished folders in a cache of its own; returns that cache."""

    def step(*places):
        for place in places:
            folder = tmp_path / "own" / "pullback" / "projects" / place
            folder.mkdir(parents=True)
            (folder / "file").write_text("as made")
            folder.with_name(folder.name + ".bytes").write_text("7")
        return tmp_path / "own"

    return step


def _names(store):
    return sorted(f"{place.parent.name}/{place.name}" for _, place in store.shown([SHA]) if place.suffix == "")


def test_a_step_leaves_what_it_may_make_and_nothing_else(store, step):
    own = step(f"environments/{NAME}", f"commits/{SHA}-0123456789abcdef", "environments/another-name")
    (own / "pullback" / "native").mkdir()
    (own / "pullback" / "native" / "x.object").write_text("code")
    store.take(own, ENVIRONMENTS, [])
    assert not own.exists()
    assert _names(store) == [f"environments/{NAME}"]
    own = step(f"commits/{'b' * 40}-0123456789abcdef", f"environments/{'1' * 16}", f"commits/{SHA}-0123456789abcdef")
    store.take(own, build_of(SHA), store.shown([SHA]))
    assert _names(store) == [f"commits/{SHA}-0123456789abcdef", f"environments/{NAME}"]
    assert list(store.place.rglob("*.object")) == []


def test_what_was_kept_is_not_made_anew_by_a_job_that_was_shown_it(store, step):
    store.take(step(f"environments/{NAME}"), ENVIRONMENTS, [])
    own = step(f"environments/{NAME}")
    (own / "pullback/projects/environments" / NAME / "file").write_text("of another")
    store.take(own, ENVIRONMENTS, store.shown([]))
    assert (store.place / "pullback/projects/environments" / NAME / "file").read_text() == "as made"


def _change(file):
    times = file.stat()
    file.write_text("altered")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize(
    "alter",
    [
        pytest.param(_change, id="content of the same length and time"),
        pytest.param(lambda file: (file.parent / "added").touch(), id="added"),
        pytest.param(lambda file: file.unlink(), id="removed"),
        pytest.param(lambda file: file.chmod(0o700), id="made a program"),
        pytest.param(lambda file: (file.unlink(), file.symlink_to("/etc/passwd")), id="linked"),
    ],
)
def test_what_was_altered_since_it_was_kept_is_removed_and_not_shown(store, step, alter):
    store.take(step(f"environments/{NAME}"), ENVIRONMENTS, [])
    assert _names(store) == [f"environments/{NAME}"]
    alter(store.place / "pullback/projects/environments" / NAME / "file")
    assert _names(store) == []
    assert list((store.place / "pullback/projects/environments").iterdir()) == []


def test_what_the_agent_did_not_seal_is_removed(store, tmp_path, step):
    Store(store.place, store.roots, b"another key").take(step(f"environments/{NAME}"), ENVIRONMENTS, [])
    planted = store.place / "pullback/projects/environments" / ("f" * 16)
    planted.mkdir()
    planted.with_name(planted.name + ".bytes").write_text("1")
    assert store.shown([SHA]) == []


def test_no_link_is_followed_to_what_is_kept(store, tmp_path, step):
    elsewhere = tmp_path / "elsewhere" / "projects" / "environments" / NAME
    elsewhere.mkdir(parents=True)
    elsewhere.with_name(f"{NAME}.bytes").write_text("1")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "pullback").symlink_to(tmp_path / "elsewhere")
    store.take(tmp_path / "own", ENVIRONMENTS, [])
    assert elsewhere.is_dir()
    own = step("environments/" + "2" * 16)
    (own / "pullback/projects/environments" / NAME).symlink_to(elsewhere)
    (own / "pullback/projects/environments" / f"{NAME}.bytes").write_text("1")
    store.take(own, ENVIRONMENTS, [])
    assert _names(store) == ["environments/" + "2" * 16]


def test_a_fork_is_shown_the_projects_and_leaves_nothing_there(store, tmp_path, step):
    store.take(step(f"environments/{NAME}"), ENVIRONMENTS, [])
    forks = Store(store.place, [*store.roots, tmp_path / "forks"], store.key)
    forks.take(step("environments/" + "3" * 16), ENVIRONMENTS, forks.shown([]))
    assert _names(forks) == ["environments/" + NAME, "environments/" + "3" * 16]
    assert _names(store) == [f"environments/{NAME}"]


def test_the_oldest_go_where_it_is_too_much(store, step, monkeypatch):
    monkeypatch.setitem(__import__("pullback_runners.sandbox.store").sandbox.store.MOST_BYTES, "environments", 10)
    for number in range(3):
        store.take(step("environments/" + str(number) * 16), ENVIRONMENTS, store.shown([]))
        for kept in (store.place / "pullback/projects/environments").glob("*.bytes"):
            os.utime(kept, ns=(0, kept.stat().st_mtime_ns - 10**9))
    assert _names(store) == ["environments/" + "2" * 16]


def test_empty_files_count_as_well(store, step):
    own = step(f"environments/{NAME}")
    for number in range(9):
        (own / "pullback/projects/environments" / NAME / str(number)).touch()
    store.take(own, ENVIRONMENTS, [])
    assert (store.place / f"pullback/projects/environments/{NAME}.bytes").read_text() == str(10 * 4096)


def test_the_key_is_made_once_and_read_by_the_agent_alone(tmp_path):
    key = secret_key(tmp_path)
    assert len(key) == 32
    assert secret_key(tmp_path) == key
    assert (tmp_path / "cache.key").stat().st_mode & 0o777 == 0o600


def _nest(folder):
    """Folders in one another, more than Python's stack is deep and longer than any path may be."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)


def test_folders_that_their_owner_may_not_enter_are_removed(open_folder, command):
    (python, *_), environment = command
    program = """
import os, sys
from pathlib import Path
from pullback_runners.sandbox.store import remove_tree
os.makedirs("job/work/closed/inner")
Path("job/work/closed/inner/file").touch()
for each in ("job/work/closed/inner", "job/work/closed", "job/work"):
    os.chmod(each, 0)
remove_tree(Path("job"))
"""
    as_user = {}
    if os.geteuid() == 0:
        os.chown(open_folder, int(USER), -1)
        as_user = {"user": int(USER)}
    subprocess.run([python, "-P", "-c", program], cwd=open_folder, env=environment, check=True, **as_user)
    assert list(open_folder.iterdir()) == []


def test_folders_without_end_are_removed_with_their_job_and_never_kept(store, tmp_path, step):
    folder = JobFolder(tmp_path / "7-1")
    folder.work.mkdir(parents=True)
    _nest(folder.work)
    folder.remove()
    assert not Path(folder.path).exists()
    own = step(f"environments/{NAME}")
    _nest(own / "pullback/projects/environments" / NAME)
    store.take(own, ENVIRONMENTS, [])
    assert _names(store) == []
    remove_tree(store.place)
    assert not store.place.exists()
