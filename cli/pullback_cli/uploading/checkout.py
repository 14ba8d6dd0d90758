"""Facts from git about the checkout of the current folder."""

from dataclasses import dataclass
from pathlib import Path

from pullback_cli.usage_errors import RefusalError
from pullback_runners.commits import stated_time
from pullback_runners.git import output_of

_REMEDY = "the file does not name the measured commit, and this folder is not a git checkout: add --commit SHA"


@dataclass(frozen=True, slots=True)
class Head:
    """The commit that is checked out."""

    sha: str
    branch: str | None
    authored_at: str | None
    dirty: bool


def is_one(folder: Path) -> bool:
    """True if git has a commit checked out here."""
    return output_of(folder, "rev-parse", "--verify", "HEAD") is not None


def branch_of(folder: Path, sha: str) -> str | None:
    """The branch that is checked out, where a commit is among its first parents."""
    branch = (output_of(folder, "symbolic-ref", "--quiet", "--short", "HEAD") or "").strip()
    # From the branch's end back to the commit, and not to what is behind it.
    line = output_of(folder, "rev-list", "--first-parent", "HEAD", f"^{sha}^@") if branch else None
    return branch if sha in (line or "").split() else None


def head(folder: Path) -> Head:
    """The commit of the folder a person stands in."""
    sha, _, authored_at = _git(folder, "show", "-s", "--format=%H%n%aI", "HEAD").partition("\n")
    branch = _git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Head(sha, branch if branch != "HEAD" else None, stated_time(authored_at), bool(changes))


def _git(folder: Path, *arguments: str) -> str:
    output = output_of(folder, *arguments)
    if output is None:
        raise RefusalError(_REMEDY)
    return output.strip()
