"""`/projects/{project}/commits/{sha}`: what was measured at a commit."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query, Request, Response

from pullback_dashboards import links
from pullback_dashboards.choices import Question, question, questions
from pullback_dashboards.commit.changes import Changes, changes_of
from pullback_dashboards.compare.parameters import commit_as_named
from pullback_dashboards.fleet.view import failure_in_words
from pullback_dashboards.history import Commit, short_of
from pullback_dashboards.incident_marks import MOST_MARKS, IncidentMark, marks_of
from pullback_dashboards.news.sources import LOOKED_AT, changes_at
from pullback_dashboards.projection_notice import note_unprojected
from pullback_dashboards.rendering import csv_response, page, page_at
from pullback_dashboards.report.page import view_of
from pullback_dashboards.report.view import ReportView
from pullback_dashboards.rerun_commands import first_measurement
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_service import statements
from pullback_service.commits.queries import parents_known
from pullback_service.commits.ref_names import named_commit
from pullback_service.current_settings import base_of
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.incidents.queries import incidents_since
from pullback_service.jobs.queries import jobs_at
from pullback_service.projects.queries import project_by_name
from pullback_service.quality import CLEAN
from pullback_service.readings.commit_readings import readings_of_commit
from pullback_service.reports.queries import StoredReport, outlines_of, reports_at
from pullback_service.rows_to_models import filled
from pullback_service.series.overview_data import measured_last
from pullback_service.series.queries import MeasuringMachine, commit_facts, is_measured_here, machines_of
from pullback_service.sessions import ReadSession

router = page_router(note_unprojected, route_class=RawNamesRoute)

COLUMNS = ("href", "machine", "suite", "cases", "failures", "quality", "dirty", "late", "started_at", "id", "format")
_MOST_REPORTS = 100
_MOST_JOBS = 20


@dataclass(frozen=True)
class ReportRow:
    """One upload at the commit. Several may be of one machine, suite and day: `id` and `started_at` tell them apart."""

    id: str
    href: str
    machine: str
    suite: str | None
    format: str
    cases: int
    failures: int
    quality: str
    dirty: bool
    late: bool
    started_at: datetime


@dataclass(frozen=True)
class JobRow:
    """A job at the commit."""

    id: int
    href: str
    suite: str
    state: str
    created_at: datetime
    failure: str | None
    """The reason for the failure; None in other states."""


@dataclass(frozen=True)
class Parent:
    """A commit that this one follows; the service may never have heard more of it than its hash."""

    sha: str
    short: str
    href: str | None


@dataclass(frozen=True)
class CommitView:
    """A commit with its changes, its uploads, its jobs, and its results on a machine.

    These are the `fullest` upload's, with the readings of the commit in the place of its values if there are several uploads.
    """

    project: str
    commit: Commit
    parents: tuple[Parent, ...]
    incidents: tuple[IncidentMark, ...]
    changes: Changes | None
    questions: tuple[Question, ...]
    reports: tuple[ReportRow, ...]
    jobs: tuple[JobRow, ...]
    fullest: ReportView | None
    is_measured_here: bool
    """True if Pullback can be asked to measure the project; else the tool is, whose files were uploaded. For commits without
    a report alone."""

    @property
    def compares(self) -> bool:
        """True if anything in the fullest report has a ratio to the baseline."""
        return self.fullest is not None and self.fullest.compares


Machine = Annotated[
    str | None,
    Query(description="Machine whose changes and results are shown; left out: the one with the newest commit."),
]


async def _read(project: str, sha: str, session: ReadSession, machine: Machine = None) -> CommitView:
    known = await project_by_name(session, project)
    project_id = ProjectId(known.id)
    found = (await named_commit(session, project_id, sha, where="commit")).commit
    commit, facts = commit_as_named(found), commit_facts(found)
    async with statements.together(session) as ask:
        reports, measuring = ask(reports_at(found.id, limit=_MOST_REPORTS)), ask(machines_of(project_id))
        parents, jobs = ask(parents_known(project_id, found.id)), ask(jobs_at(project_id, found.id, limit=_MOST_JOBS))
        incidents = ask(incidents_since(project_id, found.id, limit=MOST_MARKS))
        is_ours = ask(is_measured_here(project_id))
    stored = reports.value
    machines = _machines(stored, measuring.value, found.ordered_at)
    chosen = _chosen(machines, machine, commit)
    shown = [each for each in stored if chosen is None or each.report.machine_id == chosen.id]
    fullest = _fullest(shown) if shown else None
    async with statements.together(session) as ask:
        history = None
        if chosen is not None:
            recent = measured_last(project_id, chosen.id, limit=LOOKED_AT, until=facts)
            history = changes_at(ask, project_id, chosen.id, recent)
        files = ask(outlines_of([] if fullest is None else [fullest.report.id]))
        # Readings of one report are what it says.
        pooled = ask(readings_of_commit(found.id, chosen.id)) if chosen is not None and len(shown) > 1 else None
    return CommitView(
        project=project,
        commit=commit,
        parents=tuple(
            Parent(sha, short_of(sha), links.commit(project, sha) if is_known else None)
            for sha, is_known in parents.value
        ),
        incidents=marks_of(project, incidents.value),
        changes=None
        if history is None or chosen is None
        else changes_of(history(), project, facts, chosen, named=machine),
        questions=questions(
            question(
                "machine",
                (
                    (each.name, links.commit(project, commit.sha, machine=each.name), each is chosen)
                    for each in machines
                ),
            )
        ),
        reports=tuple(_row(report) for report in stored),
        jobs=tuple(_job_row(*each) for each in jobs.value),
        fullest=None
        if fullest is None
        else await view_of(
            session,
            fullest,
            files.value.get(fullest.report.id),
            of_commit=None if pooled is None else pooled.value,
        ),
        is_measured_here=bool(stored or jobs.value or known.repository) or is_ours.value,
    )


def _job_row(id_: int, suite: str, state: str, created_at: datetime, kind: str | None, message: str | None) -> JobRow:
    failure = failure_in_words(kind, message) if state == "failed" else None
    return JobRow(id_, links.job(id_), suite, state, created_at, failure)


def _fullest(stored: Sequence[StoredReport]) -> StoredReport:
    """The report that says most; of those that say as much the newest clean one, as on the page of a case."""
    return max(stored, key=lambda each: (each.report.points + each.report.failures, each.report.quality == CLEAN))


def _machines(
    stored: Sequence[StoredReport], measuring: Sequence[MeasuringMachine], ordered_at: datetime
) -> Sequence[MeasuringMachine]:
    """The machines that reported of the commit, the one with the project's newest commit first, as on the overview."""
    here = {each.report.machine_id: each.machine for each in stored if each.report.points or each.report.failures}
    if len(here) > 1:
        return [machine for machine in measuring if machine.id in here]
    return [MeasuringMachine(MachineId(id_), name, ordered_at) for id_, name in here.items()]


def _chosen(machines: Sequence[MeasuringMachine], name: str | None, commit: Commit) -> MeasuringMachine | None:
    if name is None:
        return machines[0] if machines else None
    for machine in machines:
        if machine.name == name:
            return machine
    others = ", ".join(machine.name for machine in machines)
    remedy = f"choose one of {others}" if others else "upload a report of it"
    raise NotFoundError(
        f"No machine {name!r} has measured commit {commit.short}: {remedy}.",
        missing=MissingObject("machine", name),
    )


RequestedView = Annotated[CommitView, Depends(_read)]
_PATH = "/projects/{project:path}/commits/{sha}"


@page_at(
    router,
    _PATH,
    RequestedView,
    csv=lambda view: csv_response(f"reports-{view.commit.short}", map(asdict, view.reports), COLUMNS),
)
async def commit_page(request: Request, view: RequestedView) -> Response:
    """The page."""
    return page(
        request,
        "commit.html",
        title=view.commit.title or f"Commit {view.commit.short}",
        project=view.project,
        view=view,
        against_baseline=view.compares if view.fullest else None,
        baseline=view.fullest.baseline if view.fullest else None,
        first_measurement=first_measurement(
            view.project, view.commit.sha, base_of(request), is_ours=view.is_measured_here
        ),
        formats=("json", "csv", "md"),
        scripts=("copy.js",),
    )


def _row(stored: StoredReport) -> ReportRow:
    report = stored.report
    id_ = str(report.id)
    return filled(ReportRow, stored, report, id=id_, href=links.report(id_), late=report.status == "late")
