"""Whose numbers a run's are, in real repositories."""

import subprocess

import pytest

from pullback_runners.errors import UsageError
from pullback_runners.report import belonging_of_engine, belonging_of_workloads


def git(folder, *arguments):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(folder, *files):
    folder.mkdir()
    git(folder, "init", "--initial-branch=trunk")
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")
    git(folder, "add", "--all")
    git(folder, "commit", "--allow-empty", "--message", f"First of {folder.name}")
    return folder


@pytest.fixture
def engine(tmp_path):
    return repository(tmp_path / "checkout", "engine/pullback/__init__.py", "mine.py") / "engine" / "pullback"


@pytest.fixture
def mine(tmp_path):
    return repository(tmp_path / "gradients", "benchmarks/speed.py", "benchmarks/memory.py")


def test_own_workloads_are_their_repositorys_by_the_name_of_its_origin_or_folder(mine, engine):
    files = [mine / "benchmarks" / "speed.py", mine / "benchmarks" / "memory.py"]
    own = belonging_of_workloads(files, engine)
    assert (own.project, own.commit["title"], own.commit["dirty"]) == ("gradients", "First of gradients", False)
    assert own.files == ("benchmarks/speed.py", "benchmarks/memory.py")
    for origin in ("https://git.example/ada/network.git", "git@git.example:network.git/", "/srv/network"):
        git(mine, "config", "remote.origin.url", origin)
        assert belonging_of_workloads(files, engine).project == "network"


def test_a_commit_that_has_not_seen_the_file_is_dirty_and_one_that_ignores_it_is_not_its_own(mine, engine):
    new = mine / "benchmarks" / "new.py"
    new.write_text("")
    assert belonging_of_workloads([new], engine).commit["dirty"]
    (mine / ".gitignore").write_text("new.py")
    ignored = belonging_of_workloads([new], engine)
    assert (ignored.project, ignored.commit) == ("benchmarks", None)


def test_a_file_outside_of_any_repository_has_a_folder_and_no_commit(tmp_path, engine):
    (tmp_path / "alone").mkdir()
    own = belonging_of_workloads([tmp_path / "alone" / "mine.py"], engine)
    assert (own.project, own.commit, own.files) == ("alone", None, ("mine.py",))


def test_files_of_two_repositories_are_no_one_report(mine, engine, tmp_path):
    other = repository(tmp_path / "other", "speed.py")
    with pytest.raises(UsageError, match="lie in two repositories"):
        belonging_of_workloads([mine / "benchmarks" / "speed.py", other / "speed.py"], engine)


def test_workloads_beside_the_engine_are_the_engines(engine):
    assert belonging_of_workloads([engine.parents[1] / "mine.py"], engine) is None
    assert belonging_of_engine(engine).commit["title"] == "First of checkout"


def test_an_engine_that_is_installed_in_somebodys_repository_is_not_at_its_commit(mine):
    installed = mine / ".venv" / "pullback"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    of_engine = belonging_of_engine(installed)
    assert (of_engine.project, of_engine.commit) == ("pullback", None)
    assert belonging_of_workloads([mine / "benchmarks" / "speed.py"], installed).commit["title"] == "First of gradients"
