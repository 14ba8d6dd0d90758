"""The commits that `up` measures: the one checked out, up to five earlier ones that changed what is measured, and new ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_runners.commits import FIELDS, read_fields
from pullback_runners.git import output_of
from pullback_runners.projects.configuration import FILE, ProjectFile
from pullback_runners.projects.subjects import files_of
from pullback_runners.revisions import uncommitted_changes

EARLIER_COMMITS = 5
MOST_OF_A_LOG = 500

Commit = Mapping[str, Any]
"""The commit object of a report and of a job."""


@dataclass(frozen=True)
class History:
    """The commits to measure, and a sentence for the person where they are fewer than one would expect.

    `repeats`: the head has the code of the newest earlier commit and is measured by the same workloads, so that it tells nothing
    that this one does not. `log` has the newest first parents of the head, itself first; a shallow clone does not know where it is cut off.
    """

    head: Commit
    earlier: tuple[Commit, ...]
    remark: str | None = None
    log: tuple[Commit, ...] = ()
    repeats: bool = False


def read_history(project: ProjectFile) -> History:
    """Read the commits of a project's clone from git."""
    repository = project.top
    branch = _ask(repository, "symbolic-ref", "--quiet", "--short", "HEAD") or None
    head = _commits(repository, branch, "--max-count=1", "HEAD")[0]
    if _ask(repository, "rev-parse", "--is-shallow-repository") == "true":
        return History(
            head, (), "this clone is shallow, so only the checked-out commit is measured (git fetch --unshallow)"
        )
    files = files_of(project.build, repository)
    changed = _commits(repository, branch, "--first-parent", f"--max-count={EARLIER_COMMITS + 1}", "HEAD", "--", *files)
    earlier = tuple(commit for commit in changed if commit["sha"] != head["sha"])[:EARLIER_COMMITS]
    dirty = uncommitted_changes(project)
    remark = f"changes that are not committed are not measured ({', '.join(dirty[:3])})" if dirty else None
    log = _commits(repository, branch, "--first-parent", f"--max-count={MOST_OF_A_LOG}", "HEAD")
    repeats = changed[:1] == list(earlier[:1]) != [] and _has_same_workloads(project, changed[0]["sha"])
    return History(head, earlier, remark, tuple(log), repeats)


def _has_same_workloads(project: ProjectFile, sha: str) -> bool:
    """True if HEAD has the file and the workloads of an earlier commit, or that one is measured by HEAD's since it has none."""
    folders = [str(Path(name).parent) for name in project.measure.workloads]
    listed = output_of(project.top, "diff", "--no-renames", "--name-status", sha, "HEAD", "--", FILE, *folders)
    changes = [line.split("\t") for line in (listed or "").splitlines()]
    return listed is not None and (not changes or ["A", FILE] in changes)


class HeadWatch:
    """Detects that HEAD of a clone has moved, to another commit or branch.

    It counts as moved when two polls find it in the same place, since a rebase moves it many times a second.
    """

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._known = self._seen = self._heads()

    def has_moved(self) -> bool:
        """True, once for each, if there is a new commit or another branch."""
        result = self._heads()
        settled, self._seen = result == self._seen, result
        if not result[0] or not settled or result == self._known:
            return False
        self._known = result
        return True

    def _heads(self) -> tuple[str, str]:
        """The hash of the commit, empty without one, and the branch, empty where none is checked out."""
        commit = _ask(self._repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return commit, _ask(self._repository, "symbolic-ref", "--quiet", "HEAD")


def _commits(repository: Path, branch: str | None, *arguments: str) -> list[Commit]:
    fields = _ask(repository, "log", "-z", f"--format={FIELDS}", *arguments).split("\0")[:-1]
    return [{**read_fields(each), "branch": branch, "dirty": False} for each in fields]


def _ask(repository: Path, *arguments: str) -> str:
    return output_of(repository, *arguments) or ""
