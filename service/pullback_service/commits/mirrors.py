"""Reading branches from a project's mirror: a clone on the workers' machine that is updated by other means.

Only git's own reading commands run on it, and nothing that the repository brings is executed.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.commits import branches
from pullback_service.commits.placement import lock_graph
from pullback_service.commits.queries import CommitDescription, learn_commits
from pullback_service.fields import EARLIEST, LATEST
from pullback_service.ids import ProjectId
from pullback_service.models.projects import Project

MOST_BRANCHES = 200
MOST_COMMITS = 2_000
MOST_UNREAD = 10
GIT_TIMEOUT_S = 60
_OF_ANOTHER_REPOSITORY = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"}
)
"""Variables that are set where a hook of git started the service: they win over the folder that is named."""
FIELDS = "%H%n%P%n%an%n%aI%n%s"


class MirrorError(Exception):
    """A mirror that cannot be read; its project stays as it was told by uploads."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """A project that has one."""

    project_id: ProjectId
    project: str
    folder: Path


async def list_mirrors(session: AsyncSession) -> list[Mirror]:
    """Projects with a mirror."""
    rows = await session.execute(select(Project.id, Project.name, Project.mirror).where(Project.mirror.is_not(None)))
    return [Mirror(ProjectId(row.id), row.name, Path(row.mirror)) for row in rows]


async def note_reading(session: AsyncSession, mirror: Mirror, *, failed: bool) -> None:
    """Write down that a mirror cannot be read, or that it can again. Index: pk_project."""
    changed = Project.mirror_unread_since.is_(None) if failed else Project.mirror_unread_since.is_not(None)
    await session.execute(
        update(Project)
        .where(Project.id == mirror.project_id, changed)
        .values(mirror_unread_since=func.now() if failed else None)
    )


async def unread_mirrors(session: AsyncSession) -> Sequence[str]:
    """Projects whose mirror cannot be read, those for the longest time first."""
    return (
        await session.scalars(
            select(Project.name)
            .where(Project.mirror.is_not(None), Project.mirror_unread_since.is_not(None))
            .order_by(Project.mirror_unread_since)
            .limit(MOST_UNREAD)
        )
    ).all()


async def read_heads(folder: Path) -> dict[str, str]:
    """Branches of a mirror and the commits they end at, those that moved last first."""
    output = await _git(
        folder,
        "for-each-ref",
        f"--count={MOST_BRANCHES}",
        "--sort=-committerdate",
        "--format=%(objectname) %(refname:lstrip=2)",
        "refs/heads",
    )
    return {name: sha for sha, _, name in (line.partition(" ") for line in output.splitlines())}


async def read_log(folder: Path, sha: str) -> list[CommitDescription]:
    """A commit and its first parents, newest first."""
    output = await _git(
        folder, "log", "-z", "--first-parent", f"--max-count={MOST_COMMITS}", f"--format={FIELDS}", sha, "--"
    )
    commits = []
    for entry in output.split("\0")[:-1]:
        of_commit, parents, author, authored_at, title = entry.split("\n")
        commits.append(
            CommitDescription(
                of_commit, tuple(parents.split()), author=author, authored_at=_time(authored_at), title=title
            )
        )
    return commits


async def follow(session: AsyncSession, mirror: Mirror, heads: dict[str, str]) -> list[str]:
    """Bring the branches that moved up to date; returns their names. Reading the same again changes nothing."""
    await lock_graph(session, mirror.project_id)
    stored = {branch.branch.name: branch.head for branch in await branches.list_branches(session, mirror.project_id)}
    moved = [name for name, sha in heads.items() if stored.get(name) != sha]
    for name in moved:
        commits = await read_log(mirror.folder, heads[name])
        await learn_commits(session, mirror.project_id, commits)
        await branches.follow_log(session, mirror.project_id, name, commits[0].sha)
    return moved


def _time(text: str) -> datetime | None:
    """A time as git writes it; one outside our calendar is not known."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if EARLIEST <= time <= LATEST else None


async def _git(folder: Path, *arguments: str) -> str:
    settings = (f"safe.directory={folder}", "core.hooksPath=/dev/null", "core.fsmonitor=false")
    flags = [part for setting in settings for part in ("-c", setting)]
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *flags,
            "-C",
            str(folder),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_REPOSITORY},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(GIT_TIMEOUT_S):
            output, complaint = await process.communicate()
    except (OSError, TimeoutError) as error:
        raise MirrorError(f"git does not run on {folder}: {error}") from error
    if process.returncode != 0:
        raise MirrorError(f"git cannot read {folder}: {complaint.decode(errors='replace').strip()[:200]}")
    return output.decode(errors="replace")
