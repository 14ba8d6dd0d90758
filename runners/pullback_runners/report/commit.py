"""The commit that was measured, as its checkout's git tells it."""

import subprocess
from pathlib import Path
from typing import Any

# One field a line; %D is left out, since a branch is asked for by its own command.
_FORMAT = "%H%n%P%n%an%n%aI%n%s"


def describe_commit(checkout: Path) -> dict[str, Any] | None:
    """Return the commit object of a report, or None without git or outside a repository.

    A checkout with changes that are not committed is `dirty`: its numbers are not those of its commit.
    """
    commit = describe_revision(checkout, "HEAD")
    if commit is None:
        return None
    return {**commit, "dirty": bool(run_git(checkout, "status", "--porcelain", "--untracked-files=no"))}


def describe_revision(repository: Path, revision: str) -> dict[str, Any] | None:
    """Return the commit object for whatever git takes for one commit, or None if it takes it for none."""
    sha = run_git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    shown = None if not sha else run_git(repository, "show", "--no-patch", f"--format={_FORMAT}", sha)
    if shown is None:
        return None
    sha, parents, author, authored_at, title = (shown.split("\n") + [""] * 4)[:5]
    return {
        "sha": sha,
        "parents": parents.split(),
        "branch": run_git(repository, "symbolic-ref", "--quiet", "--short", "HEAD"),
        "author": author,
        "authored_at": authored_at,
        "title": title,
        "dirty": False,
    }


def run_git(checkout: Path, *arguments: str) -> str | None:
    """The output of git, or None if it refuses or is not there."""
    try:
        done = subprocess.run(  # noqa: S603 - git with our own arguments
            ["git", "-C", str(checkout), *arguments],  # noqa: S607 - whichever git the user has
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip("\n") if done.returncode == 0 else None
