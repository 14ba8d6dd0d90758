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
    shown = _git(checkout, "show", "--no-patch", f"--format={_FORMAT}", "HEAD")
    if shown is None:
        return None
    sha, parents, author, authored_at, title = (shown.split("\n") + [""] * 4)[:5]
    branch = _git(checkout, "symbolic-ref", "--quiet", "--short", "HEAD")
    status = _git(checkout, "status", "--porcelain", "--untracked-files=no")
    return {
        "sha": sha,
        "parents": parents.split(),
        "branch": branch,
        "author": author,
        "authored_at": authored_at,
        "title": title,
        "dirty": bool(status),
    }


def _git(checkout: Path, *arguments: str) -> str | None:
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
