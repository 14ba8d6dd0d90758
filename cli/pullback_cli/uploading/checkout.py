"""What git knows of the checkout a person stands in."""

import subprocess
from dataclasses import dataclass

from pullback_cli.refusals import RefusalError

_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True)
class Head:
    """The commit that is checked out."""

    sha: str
    branch: str | None
    authored_at: str
    dirty: bool


def head() -> Head:
    """The commit of the folder a person stands in."""
    sha, authored_at = _git("show", "-s", "--format=%H%n%aI", "HEAD").split("\n")
    branch = _git("rev-parse", "--abbrev-ref", "HEAD")
    changes = _git("status", "--porcelain", "--untracked-files=no")
    return Head(sha, branch if branch != "HEAD" else None, authored_at, bool(changes))


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments
            ["git", *arguments],  # noqa: S607 - the git of whoever stands here
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RefusalError(
            "the file does not say which commit it measured, and this folder is no git checkout: add --commit SHA"
        ) from error
    return done.stdout.strip()
