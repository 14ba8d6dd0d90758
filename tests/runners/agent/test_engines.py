import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from pullback_runners.agent.engines import FolderEngine, GitEngines, content_hash, engine_source
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.projects.repositories import top_of


def _git(folder, *arguments):
    identity = ("-c", "user.name=A", "-c", "user.email=a@a.test", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _write_engine(folder, value):
    package = folder / "engine" / "pullback"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(f"VALUE = {value}\n")


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "-q")
    for value in (1, 2):
        _write_engine(folder, value)
        _git(folder, "add", "-A")
        _git(folder, "commit", "-qm", f"engine {value}")
    return folder


def test_the_engine_of_a_commit_is_that_commits(repository, tmp_path):
    first = _git(repository, "rev-parse", "HEAD~1")
    engine = engine_source(repository).extract(first, tmp_path / "target")
    assert (engine / "pullback" / "__init__.py").read_text() == "VALUE = 1\n"


def test_any_folder_of_the_clone_may_be_named(repository, tmp_path):
    inside = repository / "engine" / "pullback"
    engine = GitEngines(inside).extract(_git(repository, "rev-parse", "HEAD"), tmp_path / "target")
    assert (engine / "pullback" / "__init__.py").read_text() == "VALUE = 2\n"
    assert top_of(inside) == repository
    assert top_of(tmp_path) == tmp_path  # no clone


def test_a_link_in_the_engine_leads_nowhere(repository, tmp_path):
    (repository / "engine" / "pullback" / "link.py").symlink_to("/etc/passwd")
    _git(repository, "add", "-A")
    _git(repository, "commit", "-qm", "a link")
    engine = GitEngines(repository).extract(_git(repository, "rev-parse", "HEAD"), tmp_path / "target")
    assert [path.name for path in (engine / "pullback").iterdir()] == ["__init__.py"]


def test_no_hook_of_the_repository_runs_and_nothing_in_it_changes(repository, tmp_path):
    ran = tmp_path / "ran"
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook = repository / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    before = sorted(path for path in (repository / ".git").rglob("*"))
    engine_source(repository).extract(_git(repository, "rev-parse", "HEAD"), tmp_path / "target")
    assert not ran.exists()
    assert sorted(path for path in (repository / ".git").rglob("*")) == before


def test_a_commit_that_is_missing_is_fetched_from_the_origin(repository, tmp_path):
    clone = tmp_path / "clone"
    _git(tmp_path, "clone", "-q", str(repository), str(clone))
    _write_engine(repository, 3)
    _git(repository, "commit", "-qam", "engine 3")
    newest = _git(repository, "rev-parse", "HEAD")
    engine = GitEngines(clone).extract(newest, tmp_path / "target")
    assert (engine / "pullback" / "__init__.py").read_text() == "VALUE = 3\n"


def test_a_commit_that_the_clone_lacks_is_tried_again_and_named(repository, tmp_path):
    _git(repository, "remote", "add", "origin", "file:///of/nobody:secret@host")
    with pytest.raises(JobFailedError, match=f"push commit {'f' * 10} to the origin.*git says") as caught:
        GitEngines(repository).extract("f" * 40, tmp_path / "target")
    assert "/" not in str(caught.value)  # where an agent keeps its clone is nobody's business
    assert "secret" not in str(caught.value)
    assert (caught.value.kind, caught.value.retryable) == ("infra", True)


def test_a_commit_without_an_engine_is_a_failed_build(repository, tmp_path):
    _git(repository, "rm", "-qr", "engine")
    _git(repository, "commit", "-qm", "no engine")
    with pytest.raises(JobFailedError, match="has no engine/"):
        GitEngines(repository).extract(_git(repository, "rev-parse", "HEAD"), tmp_path / "target")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_not_a_commit_without_an_engine(repository, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: Path("/dev/full").open("wb"))  # noqa: SIM115 - its user closes it
    with pytest.raises(JobFailedError, match="No space left on device.*free some space or set TMPDIR"):
        GitEngines(repository).extract(_git(repository, "rev-parse", "HEAD"), tmp_path / "target")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_clone_of_another_user_is_read_all_the_same(repository, tmp_path):
    for path in (repository, *repository.rglob("*")):
        shutil.chown(path, 65534, 65534)
    sha = subprocess.check_output(
        ["git", "-c", f"safe.directory={repository}", "-C", repository, "rev-parse", "HEAD"], text=True
    ).strip()
    assert GitEngines(repository).extract(sha, tmp_path / "target").exists()


def test_without_git_the_files_are_named_by_their_content(tmp_path):
    _write_engine(tmp_path, 1)
    source = engine_source(tmp_path)
    assert isinstance(source, FolderEngine)
    sha = content_hash(tmp_path / "engine")
    assert len(sha) == 40
    assert source.extract(sha, tmp_path / "unused") == tmp_path / "engine"
    _write_engine(tmp_path, 2)
    with pytest.raises(JobFailedError, match="not under git") as failure:
        source.extract(sha, tmp_path / "unused")
    assert (failure.value.kind, failure.value.retryable) == ("infra", True)
