"""The commit that was measured, read from its checkout by git."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pullback_runners.git import output_of

FIELDS = "%H%n%P%n%an%n%aI%n%s"
"""Fields of a commit for `git log`, one a line, because a title may contain any other separator."""
_LONGEST = 2000  # of titles, which git makes of all lines up to the first empty one
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def describe_commit(checkout: Path) -> dict[str, Any] | None:
    """Return the commit object of a report, or None without git or outside a repository.

    A checkout with changes that are not committed is `dirty`: its numbers are not those of its commit.
    """
    commit = describe_revision(checkout, "HEAD")
    if commit is None:
        return None
    return {**commit, "dirty": bool(output_of(checkout, "status", "--porcelain", "--untracked-files=no"))}


def describe_revision(repository: Path, revision: str) -> dict[str, Any] | None:
    """Return the commit object for whatever git takes for one commit, or None if it takes it for none."""
    sha = output_of(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    output = None if not sha else output_of(repository, "show", "--no-patch", f"--format={FIELDS}", sha)
    if output is None:
        return None
    return {
        **read_fields(output),
        "branch": output_of(repository, "symbolic-ref", "--quiet", "--short", "HEAD"),
        "dirty": False,
    }


def read_fields(text: str) -> dict[str, Any]:
    """The parts of a commit that are in its fields."""
    sha, parents, author, authored_at, title = (text.split("\n") + [""] * 4)[:5]
    return {
        "sha": sha,
        "parents": parents.split(),
        "author": author,
        "authored_at": stated_time(authored_at),
        "title": title[:_LONGEST].strip(),
    }


def stated_time(text: str) -> str | None:
    """A time as git writes it; None of what is no time, or one outside the calendar of the service."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return text if _EARLIEST <= time < _LATEST else None
