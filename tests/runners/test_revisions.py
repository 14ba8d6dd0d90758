import os

import pytest
from tests.runners.conftest import git

from pullback_runners.commits import describe_commit
from pullback_runners.errors import UsageError
from pullback_runners.projects.configuration import find_project
from pullback_runners.revisions import (
    count_commits,
    find_commit,
    find_commits,
    require_project,
    uncommitted_changes,
)


def test_a_range_gives_the_commits_that_changed_the_engine_oldest_first(clone):
    project = find_project(clone)
    assert [commit["title"] for commit in find_commits(project, "plain..none")] == [
        "engine slow",
        "engine wrong",
        "engine none",
    ]
    assert [commit["title"] for commit in find_commits(project, "docs")] == ["engine docs"]


@pytest.mark.parametrize("wish", ["nowhere", "nowhere..HEAD", "HEAD..nowhere", "--all", ""])
def test_what_git_does_not_know_is_named(clone, wish):
    with pytest.raises(UsageError, match="has no revision"):
        find_commits(find_project(clone), wish)


def test_a_range_in_which_nothing_measured_changes_says_so(clone):
    with pytest.raises(UsageError, match=r"no commit in plain\.\.docs changes engine pyproject.toml setup.py;"):
        find_commits(find_project(clone), "plain..docs")


def test_what_a_shallow_clone_lacks_is_said_with_the_remedy(clone, tmp_path):
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{clone}", "shallow")
    with pytest.raises(UsageError, match="this clone is shallow, git fetch --unshallow brings the older ones"):
        find_commit(tmp_path / "shallow", "plain")


def test_a_commit_that_is_gone_may_be_had_from_the_remote(clone):
    with pytest.raises(UsageError, match="removed it from its branch, git fetch origin a{40} brings it"):
        find_commit(clone, "a" * 40)


def test_uncommitted_changes_are_those_of_what_is_measured(clone):
    project = find_project(clone)
    (clone / "README").write_text("other words")
    for leftover in ("demo.egg-info", "__pycache__"):
        (clone / "engine" / leftover).mkdir()
        (clone / "engine" / leftover / "made").touch()
    assert uncommitted_changes(project) == []
    (clone / "engine" / "pullback" / "__init__.py").write_text("TIERS = ()\n")
    (clone / "engine" / "pullback" / "new.py").touch()
    assert len(uncommitted_changes(project)) == 2


def test_commits_of_a_range_are_counted_whatever_they_changed(clone):
    assert count_commits(find_project(clone), "plain..docs") > 0


def test_a_command_that_cannot_know_the_project_says_why(clone, tmp_path):
    with pytest.raises(UsageError, match="is in no git repository with commits"):
        require_project(tmp_path)
    git(tmp_path, "clone", "-q", "--bare", str(clone), "bare")
    with pytest.raises(UsageError, match="is a bare repository, where no pullback.toml is checked out"):
        require_project(tmp_path / "bare")
    (clone / "pullback.toml").rename(clone / "engine" / "pullback.toml")
    with pytest.raises(UsageError, match="no pullback.toml in .* or above; `pullback init` writes one"):
        require_project(clone)
    with pytest.raises(UsageError, match="is not at the top of its repository; move it to"):
        require_project(clone / "engine")


def test_looking_at_a_repository_leaves_its_index_to_whoever_works_there(clone):
    index = clone / ".git" / "index"
    (clone / "engine" / "pullback" / "__init__.py").touch()  # git would note that it is as it was
    os.utime(index, (1, 1))
    assert uncommitted_changes(find_project(clone)) == []
    assert not describe_commit(clone)["dirty"]
    assert index.stat().st_mtime == 1
