"""Commits to measure, and their engines built side by side: each with files and object code of its own."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_runners.agent.engines import ENGINE, GitEngines, git, is_clone
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.errors import BuildError, UsageError
from pullback_runners.report import describe_revision

Commit = Mapping[str, Any]
"""The commit object of a report."""


@dataclass(frozen=True)
class BuiltEngine:
    """An engine that can be imported, and whose it is."""

    commit: Commit
    engine: Path
    objects: Path


def find_commit(repository: Path, revision: str) -> Commit:
    """The one commit that a revision names."""
    _refuse_no_clone(repository)
    commit = describe_revision(repository, revision)
    if commit is None:
        raise UsageError(
            f"{repository} has no revision {revision!r}; give a commit, tag or branch that `git log` shows there"
            " (a shallow clone lacks the older ones: git fetch --unshallow)"
        )
    return commit


def find_commits(repository: Path, wish: str) -> list[Commit]:
    """The commits of `A..B`, oldest first: those on the first-parent line that changed the engine; or the one commit named.

    As in git, A itself is not among them.
    """
    _refuse_no_clone(repository)
    if ".." not in wish:
        return [find_commit(repository, wish)]
    for end in wish.split("...") if "..." in wish else wish.split(".."):
        find_commit(repository, end or "HEAD")
    listed = git(repository, "rev-list", "--first-parent", "--reverse", "--end-of-options", wish, "--", ENGINE)
    if listed.returncode != 0:
        raise UsageError(f"git does not understand the range {wish!r}; give one like v1.0..HEAD")
    shas = listed.stdout.decode().split()
    if not shas:
        raise UsageError(f"no commit in {wish} changes {ENGINE}/; `git log {wish} -- {ENGINE}` shows those that do")
    return [find_commit(repository, sha) for sha in shas]


def build_engine(repository: Path, commit: Commit, folder: Path) -> BuiltEngine:
    """Put the engine of a commit into a folder of its own; BuildError says why it cannot be had."""
    target = folder / commit["sha"]
    try:
        engine = GitEngines(repository).extract(commit["sha"], target)
    except JobFailedError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise BuildError(str(error)) from error
    except OSError as error:
        raise BuildError(
            f"the engine of {commit['sha'][:10]} cannot be written to {folder}: {error.strerror}; "
            "free some space or set TMPDIR"
        ) from error
    return BuiltEngine(commit, engine, target / "objects")


def uncommitted_changes(repository: Path) -> list[str]:
    """Files of the engine that differ from the checked-out commit, new ones included."""
    status = git(repository, "status", "--porcelain", "--untracked-files=normal", "--", ENGINE)
    return [line[3:] for line in status.stdout.decode(errors="replace").splitlines()]


def _refuse_no_clone(repository: Path) -> None:
    if not is_clone(repository):
        raise UsageError(f"{repository} is no git clone with commits; give a clone of the engine with --repository")


def copy_engine(repository: Path, folder: Path) -> BuiltEngine:
    """Copy the engine's files as they are, so that an editor that saves in the meantime changes no measurement."""
    commit = {**find_commit(repository, "HEAD"), "dirty": bool(uncommitted_changes(repository))}
    try:
        shutil.copytree(
            repository / ENGINE, folder / ENGINE, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    except (OSError, shutil.Error) as error:
        raise BuildError(f"the engine of {repository} cannot be copied to {folder}: {error}") from error
    return BuiltEngine(commit, folder / ENGINE, folder / "objects")
