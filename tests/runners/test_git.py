"""Git is asked of the repository that is named, also inside of a hook of another one."""

import subprocess

import pytest
from tests.runners.conftest import git

from pullback_runners.commits import describe_commit
from pullback_runners.git import output_of, top_of, variables_elsewhere
from pullback_runners.projects.configuration import find_project
from pullback_runners.projects.environments import own_variables
from pullback_runners.revisions import require_project, uncommitted_changes

SETTINGS = {"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"}


@pytest.fixture
def other(tmp_path):
    """Another repository, whose files differ from its commit."""
    folder = tmp_path / "other"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "another one")
    return folder


@pytest.mark.parametrize(
    "set_by_hook",
    [
        {"GIT_DIR": ".git"},
        {"GIT_DIR": ".git", "GIT_WORK_TREE": "."},
        {"GIT_INDEX_FILE": ".git/next-index"},
        {"GIT_OBJECT_DIRECTORY": ".git/objects"},
    ],
)
def test_variables_of_a_hook_do_not_win_over_the_repository_that_is_named(clone, other, monkeypatch, set_by_hook):
    described = describe_commit(clone)
    for name, place in set_by_hook.items():
        monkeypatch.setenv(name, str(other / place))
    assert describe_commit(clone) == described
    assert described["dirty"] is False
    assert top_of(clone / "engine") == clone
    assert require_project(clone).top == clone
    assert uncommitted_changes(find_project(clone)) == []
    assert set_by_hook.keys().isdisjoint(own_variables())


def test_all_variables_of_one_repository_are_left_out_and_settings_are_not(monkeypatch):
    listed = set(subprocess.check_output(["git", "rev-parse", "--local-env-vars"], text=True).split())
    for name in listed:
        monkeypatch.setenv(name, "1")
    assert variables_elsewhere().keys() & listed == SETTINGS & listed


def test_what_git_refuses_has_no_output(clone, tmp_path, monkeypatch):
    assert output_of(clone, "rev-parse", "--verify", "--quiet", "nowhere") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert output_of(clone, "rev-parse", "HEAD") is None
