import subprocess

import pytest

from pullback_cli.supervision.history import EARLIER_COMMITS, read_history


def _git(folder, *arguments):
    identity = ("-c", "user.name=A", "-c", "user.email=a@a.test", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


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


def test_the_head_and_the_newest_commits_that_changed_the_engine(repository):
    engines = [_commit(repository, "engine/pullback/__init__.py", str(number)) for number in range(8)]
    head = _commit(repository, "README.md", "words")
    history = read_history(repository)
    assert history.head["sha"] == head
    assert history.head["parents"] == [engines[-1]]
    assert (history.head["branch"], history.head["author"], history.head["title"]) == ("main", "A", "README.md: words")
    assert [commit["sha"] for commit in history.earlier] == engines[::-1][:EARLIER_COMMITS]
    assert history.remark is None


def test_a_head_that_changed_the_engine_is_not_measured_twice(repository):
    engines = [_commit(repository, "engine/pullback/__init__.py", str(number)) for number in range(2)]
    history = read_history(repository)
    assert (history.head["sha"], [commit["sha"] for commit in history.earlier]) == (engines[1], engines[:1])


def test_a_shallow_clone_means_the_head_only_and_says_so(repository, tmp_path):
    for number in range(3):
        _commit(repository, "engine/pullback/__init__.py", str(number))
    _git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", str(tmp_path / "shallow"))
    history = read_history(tmp_path / "shallow")
    assert history.earlier == ()
    assert "shallow" in history.remark


def test_changes_that_are_not_committed_are_said_not_to_be_measured(repository):
    _commit(repository, "engine/pullback/__init__.py", "1")
    (repository / "engine/pullback/__init__.py").write_text("2")
    assert "not committed" in read_history(repository).remark


def test_without_git_the_content_is_the_name(tmp_path):
    package = tmp_path / "engine" / "pullback"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("1")
    first = read_history(tmp_path)
    assert (len(first.head["sha"]), first.head["dirty"], first.earlier) == (40, True, ())
    assert "not a git clone" in first.remark
    (package / "__init__.py").write_text("2")
    assert read_history(tmp_path).head["sha"] != first.head["sha"]


def test_git_that_is_not_installed_is_no_git(repository, monkeypatch):
    _commit(repository, "engine/pullback/__init__.py", "1")
    monkeypatch.setenv("PATH", "/nowhere")
    assert "git is missing" in read_history(repository).remark
