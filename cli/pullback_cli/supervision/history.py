"""Which commits `up` measures: the one checked out, then up to five earlier ones that changed the engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pullback_runners.agent.engines import ENGINE, FolderEngine, content_hash, engine_source
from pullback_runners.projects.repositories import git, is_clone

EARLIER_COMMITS = 5
_FIELDS = "%H%x1f%P%x1f%an%x1f%aI%x1f%s"

Commit = Mapping[str, Any]
"""The commit object of a report and of a job."""


@dataclass(frozen=True)
class History:
    """What to measure, and a sentence for the person where it is less than one would expect."""

    head: Commit
    earlier: tuple[Commit, ...]
    remark: str | None = None


def read_history(repository: Path) -> History:
    """Read the commits from git, or identify the files as they are where there is no git."""
    if not is_clone(repository):
        return _without_git(repository)
    branch = _ask(repository, "symbolic-ref", "--quiet", "--short", "HEAD") or None
    head = _commits(repository, branch, "--max-count=1", "HEAD")[0]
    if _ask(repository, "rev-parse", "--is-shallow-repository") == "true":
        return History(
            head, (), "this clone is shallow, so only the checked-out commit is measured (git fetch --unshallow)"
        )
    changed = _commits(repository, branch, "--first-parent", f"--max-count={EARLIER_COMMITS + 1}", "HEAD", "--", ENGINE)
    earlier = tuple(commit for commit in changed if commit["sha"] != head["sha"])[:EARLIER_COMMITS]
    dirty = bool(_ask(repository, "status", "--porcelain", "--untracked-files=normal", "--", ENGINE))
    return History(head, earlier, "changes of engine/ that are not committed are not measured" if dirty else None)


def _without_git(repository: Path) -> History:
    """No commit to name: the content of the engine names itself, and says so."""
    source = engine_source(repository)
    engine = source.engine if isinstance(source, FolderEngine) else repository / ENGINE
    newest = max((path.stat().st_mtime for path in engine.rglob("*.py")), default=0.0)
    head: Commit = {
        "sha": content_hash(engine),
        "parents": [],
        "branch": None,
        "author": None,
        "authored_at": datetime.fromtimestamp(newest, UTC).isoformat(),
        "title": "engine files without git, named by their content",
        "dirty": True,
    }
    return History(
        head, (), f"{repository} is not a git clone (or git is missing), so only the files as they are get measured"
    )


def _commits(repository: Path, branch: str | None, *arguments: str) -> list[Commit]:
    commits: list[Commit] = []
    for line in _ask(repository, "log", f"--format={_FIELDS}", *arguments).splitlines():
        sha, parents, author, authored_at, title = line.split("\x1f")
        commits.append(
            {
                "sha": sha,
                "parents": parents.split(),
                "branch": branch,
                "author": author,
                "authored_at": authored_at,
                "title": title,
                "dirty": False,
            }
        )
    return commits


def _ask(repository: Path, *arguments: str) -> str:
    done = git(repository, *arguments)
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""
