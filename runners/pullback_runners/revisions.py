"""Commits to measure: the revisions of a project's repository."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pullback_runners.commits import describe_revision
from pullback_runners.errors import UsageError
from pullback_runners.git import git, is_bare, is_clone, top_of
from pullback_runners.projects.configuration import FILE, ProjectFile, find_project
from pullback_runners.projects.subjects import files_of

Commit = Mapping[str, Any]
"""The commit object of a report."""


def require_project(start: Path) -> ProjectFile:
    """The project of the repository that a folder is in; UsageError says what is missing."""
    if not is_clone(start):
        raise UsageError(f"{start} is in no git repository with commits; go to yours, or name it by --repository")
    project = checked_out_project(start)
    if project is None:
        raise UsageError(f"no {FILE} in {start} or above; `pullback init` writes one")
    top = top_of(start).resolve()
    if project.top != top:
        raise UsageError(f"{project.top / FILE} is not at the top of its repository; move it to {top}")
    return project


def checked_out_project(start: Path) -> ProjectFile | None:
    """The project that a folder belongs to; UsageError in a bare repository, whose project is not looked for in its commits."""
    if is_bare(start):
        raise UsageError(f"{start} is a bare repository, where no {FILE} is checked out; give a clone of it")
    return find_project(start)


def find_commit(repository: Path, revision: str) -> Commit:
    """The one commit that a revision names."""
    commit = describe_revision(repository, revision)
    if commit is None:
        raise UsageError(f"{repository} has no revision {revision!r}; {_where_it_may_be(repository, revision)}")
    return commit


def _where_it_may_be(repository: Path, revision: str) -> str:
    if git(repository, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true":
        return "this clone is shallow, git fetch --unshallow brings the older ones"
    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return (
            f"if a push removed it from its branch, git fetch origin {revision} brings it as long as the remote has it"
        )
    return "give a commit, tag or branch that `git log` shows there"


def find_commits(project: ProjectFile, wish: str) -> list[Commit]:
    """The commits of `A..B`, oldest first: those on the first-parent line that changed what is measured; or the one named.

    As in git, A itself is not among them.
    """
    if ".." not in wish:
        return [find_commit(project.top, wish)]
    for end in wish.split("...") if "..." in wish else wish.split(".."):
        find_commit(project.top, end or "HEAD")
    files = files_of(project.build, project.top)
    listed = git(project.top, "rev-list", "--first-parent", "--reverse", "--end-of-options", wish, "--", *files)
    if listed.returncode != 0:
        raise UsageError(f"git does not understand the range {wish!r}; give one like v1.0..HEAD")
    shas = listed.stdout.decode().split()
    if not shas:
        named = " ".join(files)
        raise UsageError(f"no commit in {wish} changes {named}; `git log {wish} -- {named}` shows those that do")
    return [find_commit(project.top, sha) for sha in shas]


def count_commits(project: ProjectFile, wish: str) -> int:
    """The number of commits of `A..B` on the first-parent line, whatever they changed."""
    counted = git(project.top, "rev-list", "--count", "--first-parent", "--end-of-options", wish)
    return int(counted.stdout or 0)


def uncommitted_changes(project: ProjectFile, files: Sequence[str] = ()) -> list[str]:
    """Files, by default those that are measured, that differ from the checked-out commit, new ones included.

    Python's bytecode and what an installation notes beside the sources are none, for a repository need not ignore them.
    """
    leftovers = (f":(exclude,glob)**/{each}/**" for each in ("__pycache__", "*.egg-info"))
    paths = [*(files or files_of(project.build, project.top)), *leftovers]
    status = git(project.top, "status", "--porcelain", "--untracked-files=all", "--", *paths)
    return [line[3:] for line in status.stdout.decode(errors="replace").splitlines()]
