import itertools
import subprocess

import pytest

from pullback_cli.supervision.recent_commits import EARLIER_COMMITS, HeadWatch, read_history
from pullback_cli.uploading.checkout import head
from pullback_cli.uploading.git_log import first_parents
from pullback_runners.commits import describe_commit
from pullback_runners.projects.configuration import Build, ProjectFile, read_project


def _git(folder, *arguments):
    identity = ("-c", "user.name=A", "-c", "user.email=a@a.test", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _history(folder):
    return read_history(ProjectFile(folder, build=Build(path=("lib",))))


def _commit(folder, path, content):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", f"{path}: {content}")
    return _git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "-q")
    return folder


def test_the_head_and_the_newest_commits_that_changed_what_is_measured(repository):
    engines = [_commit(repository, "lib/demo.py", str(number)) for number in range(8)]
    head = _commit(repository, "README.md", "words")
    history = _history(repository)
    assert history.head["sha"] == head
    assert history.head["parents"] == [engines[-1]]
    assert (history.head["branch"], history.head["author"], history.head["title"]) == ("main", "A", "README.md: words")
    assert [commit["sha"] for commit in history.earlier] == engines[::-1][:EARLIER_COMMITS]
    assert history.remark is None


def test_a_head_that_changed_it_is_not_measured_twice(repository):
    engines = [_commit(repository, "lib/demo.py", str(number)) for number in range(2)]
    history = _history(repository)
    assert (history.head["sha"], [commit["sha"] for commit in history.earlier]) == (engines[1], engines[:1])


def test_a_shallow_clone_means_the_head_only_and_says_so(repository, tmp_path):
    for number in range(3):
        _commit(repository, "lib/demo.py", str(number))
    _git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", str(tmp_path / "shallow"))
    history = _history(tmp_path / "shallow")
    assert history.earlier == ()
    assert "shallow" in history.remark


def test_changes_that_are_not_committed_are_said_not_to_be_measured(repository):
    _commit(repository, "lib/demo.py", "1")
    (repository / "lib/demo.py").write_text("2")
    assert "not committed" in _history(repository).remark


def test_a_head_that_moves_is_told_once_and_not_before_it_stays(repository):
    _commit(repository, "lib/demo.py", "1")
    watch = HeadWatch(repository)
    assert not watch.has_moved()
    second = _commit(repository, "lib/demo.py", "2")
    assert not watch.has_moved()
    _commit(repository, "lib/demo.py", "3")  # as a rebase does it
    assert not watch.has_moved()
    assert watch.has_moved()
    assert not watch.has_moved()
    _git(repository, "checkout", "-q", second)
    assert [watch.has_moved(), watch.has_moved()] == [False, True]


def test_a_branch_that_comes_to_the_same_commit_is_told(repository):
    _commit(repository, "lib/demo.py", "1")
    watch = HeadWatch(repository)
    _git(repository, "checkout", "-q", "-b", "topic")
    assert [watch.has_moved() for _ in range(3)] == [False, True, False]


def test_the_log_of_the_branch_has_commits_that_are_not_measured(repository):
    _commit(repository, "lib/demo.py", "1")
    for number in range(8):
        _commit(repository, "README", str(number))
    history = _history(repository)
    assert len(history.log) > len(history.earlier) + 1
    assert history.log[0] == history.head
    for child, commit in itertools.pairwise(history.log):
        assert child["parents"][:1] == [commit["sha"]]


def test_a_clone_that_cannot_be_read_for_a_moment_has_not_moved(repository):
    _commit(repository, "lib/demo.py", "1")
    watch = HeadWatch(repository)
    (repository / ".git").rename(repository / "away")
    assert [watch.has_moved() for _ in range(3)] == [False] * 3
    (repository / "away").rename(repository / ".git")
    assert [watch.has_moved() for _ in range(3)] == [False] * 3


@pytest.mark.parametrize("title", ["a\u2028b", "a\x0cb", "a\x1fb", "a\x85b"])
def test_a_title_may_hold_whatever_ends_lines_elsewhere(repository, title):
    _commit(repository, "lib/demo.py", "1")
    _git(repository, "commit", "-q", "--allow-empty", "-m", title)
    history = _history(repository)
    assert [commit["title"] for commit in history.log] == [title, "lib/demo.py: 1"]
    assert [commit["title"] for commit in first_parents(repository, "HEAD", 5)] == [title, "lib/demo.py: 1"]


@pytest.mark.parametrize(("date", "told"), [("@7500000000 +0000", False), ("@1700000000 +0000", True)])
def test_a_time_that_the_service_takes_for_none_is_not_told(repository, date, told):
    _commit(repository, "lib/demo.py", "1")
    _git(repository, "commit", "-q", "--allow-empty", "-m", "then", f"--date={date}")
    history = _history(repository)
    for said in (history.head, history.log[0], first_parents(repository, "HEAD", 1)[0], describe_commit(repository)):
        assert (said["authored_at"] is not None) == told
    assert (head(repository).authored_at is not None) == told


def _project(folder):
    return read_project(folder / "pullback.toml")


DECLARED = '[build]\npath = ["lib"]\n[measure]\nworkloads = ["bench/gradients.py"]\n'


def test_a_head_that_adds_how_it_is_measured_repeats_the_commit_before_it(repository):
    _commit(repository, "lib/demo.py", "1")
    (repository / "bench").mkdir()
    (repository / "bench/gradients.py").write_text("")
    _commit(repository, "pullback.toml", DECLARED)
    assert read_history(_project(repository)).repeats
    _commit(repository, "README", "words")
    assert read_history(_project(repository)).repeats
    _commit(repository, "lib/demo.py", "2")
    assert not read_history(_project(repository)).repeats
    _commit(repository, "README", "more words")
    assert read_history(_project(repository)).repeats
    _commit(repository, "bench/cases.py", "sizes = (1, 2)")
    assert not read_history(_project(repository)).repeats


def test_the_only_commit_repeats_none(repository):
    (repository / "bench").mkdir()
    (repository / "bench/gradients.py").write_text("")
    (repository / "lib").mkdir()
    (repository / "lib/demo.py").write_text("")
    _commit(repository, "pullback.toml", DECLARED)
    assert not read_history(_project(repository)).repeats
