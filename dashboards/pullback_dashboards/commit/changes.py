"""Changes at a commit on a machine: the news of the overview, of this commit alone and whenever it was."""

from dataclasses import dataclass

from pullback_dashboards import links
from pullback_dashboards.history import Commit, History
from pullback_dashboards.news.view import AT_A_COMMIT, Told, tell
from pullback_service.series.queries import CommitFacts, MeasuringMachine


@dataclass(frozen=True)
class Changes:
    """The changes on a machine since the commit `before` that this one follows.

    That is None where it is the machine's `first`, and where nobody knows which it is.
    """

    machine: str
    first: bool
    before: Commit | None
    compare_href: str | None
    told: Told


def changes_of(
    history: History, project: str, commit: CommitFacts, machine: MeasuringMachine, *, named: str | None
) -> Changes | None:
    """The changes on a machine at a commit; None where it measured nothing there. Addresses go on with the machine if `named`."""
    if not history.commits or history.commits[-1].id != commit.id:
        return None
    at = history.before(len(history.commits) - 1)
    before = history.commits[at] if at >= 0 else None
    return Changes(
        machine=machine.name,
        first=len(history.commits) == 1,
        before=before,
        compare_href=links.compare(project, base=before.sha, head=commit.sha, machine=named) if before else None,
        told=tell(history, AT_A_COMMIT, project=project, machine=named),
    )
