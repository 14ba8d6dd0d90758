"""Reading steps."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, LiteralString, NamedTuple

from sqlalchemy import BigInteger, Boolean, Text, bindparam, case, literal_column, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.comparisons.judging import Judgement, as_resolved
from pullback_service.comparisons.queries import SeriesComparison
from pullback_service.ids import MachineId
from pullback_service.models.projects import Project
from pullback_service.projects.queries import remember_projects
from pullback_service.readings.reading import COLUMNS as READING_COLUMNS
from pullback_service.readings.reading import WIDTH as READING_WIDTH
from pullback_service.readings.reading import Place, Reading
from pullback_service.rule_version import RULE
from pullback_service.statements import Query, Rows
from pullback_service.steps.step import COLUMNS, WIDTH, Step, step_of

MOST_NEWS: Final = 2_000


class StepSeries(NamedTuple):
    """The series of a step. `is_subject`: commits of the project can move it, as they cannot move an engine's peers."""

    case_id: int
    workload: str
    case: str
    variant: str
    metric: str
    unit: str
    direction: str
    exact: bool
    kind: str
    is_subject: bool


class StepCommit(NamedTuple):
    """The commit that a step is judged against."""

    id: int
    sha: str
    title: str | None
    author: str | None
    branch: str | None
    authored_at: datetime | None
    ordered_at: datetime

    @property
    def place(self) -> Place:
        """The place of the commit."""
        return self.ordered_at, self.id


class StepWithReadings(NamedTuple):
    """A step with the readings at both ends, None where there is none."""

    step: Step
    series: StepSeries
    reference: StepCommit
    place: Place
    before: Reading | None
    now: Reading | None

    @property
    def judgement(self) -> Judgement:
        """The judgement: whatever is news was judged."""
        assert self.step.judgement is not None  # noqa: S101 - only first readings are not judged
        return self.step.judgement

    @property
    def is_claim(self) -> bool:
        """True if groups held both commits, or an upload compared them otherwise."""
        return self.step.via == "compared" or self.judgement.evidence == "paired"


IS_SUBJECT: Final[LiteralString] = "(series.variant_kind <> 'peer' OR coalesce(measured.subject, '') <> '')"
"""True of a series that commits of its project can move: a peer of which a report names the files that were measured, and
whatever is no peer. An engine's peers name none."""
JOINED_RESOLUTION: Final[LiteralString] = """
series_state
  ON series_state.series_id = step.series_id AND step.outcome IN ('likely_slower', 'likely_faster')
 AND step.evidence IN ('ratios', 'values')
"""
IS_RESOLVED: Final[LiteralString] = "(abs(step.log_ratio) < series_state.resolution) IS NOT TRUE"
"""False of a step that `as_resolved` calls ambiguous, once its series is left joined by `JOINED_RESOLUTION`."""
_KNOWN: Final[LiteralString] = f"""
  WITH step AS MATERIALIZED (SELECT * FROM step WHERE news AND NOT stale AND {{which}})
SELECT {COLUMNS}, series.case_id, "case".workload, "case".label, series.variant, series.metric, series.unit, series.direction,
       series.exact, series.variant_kind, {IS_SUBJECT}, older.id, older.sha, older.title, older.author, older.branch, older.authored_at, older.ordered_at,
       newer.ordered_at, newer.id, {READING_COLUMNS.replace("reading.", "before.")}, {READING_COLUMNS.replace("reading.", "now.")}
  FROM step
  JOIN series ON series.id = step.series_id
  JOIN "case" ON "case".id = series.case_id
  JOIN commit older ON older.id = step.reference_id
  JOIN commit newer ON newer.id = step.commit_id
  LEFT JOIN reading before ON before.commit_id = step.reference_id AND before.series_id = step.series_id
  LEFT JOIN reading now ON now.commit_id = step.commit_id AND now.series_id = step.series_id
  LEFT JOIN measured ON measured.id = now.measured_id
  LEFT JOIN {JOINED_RESOLUTION}
 WHERE (step.via <> 'compared' OR (older.ordered_at, older.id) < (newer.ordered_at, newer.id)) -- they are stored both ways
   AND {IS_RESOLVED}
   AND {{also}}
 ORDER BY newer.ordered_at DESC, newer.id DESC, "case".workload, "case".natural_label, series.variant, series.metric, step.series_id,
          older.ordered_at
 LIMIT %(most)s
"""  # noqa: S608 - our own words
_NEWS_AT: Final[LiteralString] = _KNOWN.replace("{which}", "commit_id = ANY (%(commits)s::bigint[])").replace(
    "{also}", "series.machine_id = %(machine)s AND series.case_id = coalesce(%(case)s, series.case_id)"
)
_NEWS_OF: Final[LiteralString] = _KNOWN.replace("{which}", "series_id = ANY (%(series)s::bigint[])").replace(
    "{also}", "(newer.ordered_at, newer.id) >= (%(ordered_at)s, %(commit)s)"
)
_REFERRED_TO: Final[LiteralString] = """
SELECT DISTINCT step.reference_id AS id
  FROM step
  JOIN series ON series.id = step.series_id
 WHERE step.news AND NOT step.stale AND step.commit_id = ANY (%(commits)s::bigint[]) AND series.machine_id = %(machine)s
"""
_OF_CASE: Final[LiteralString] = f"""
SELECT series.id, series.variant_kind, series.case_id, series.machine_id, series.variant, series.metric, series.unit,
       series.direction, series.exact, {COLUMNS},
       CASE WHEN step.doubt = 'wrong_gradient' THEN step.detail END, {READING_COLUMNS.replace("reading.", "before.")},
       {READING_COLUMNS.replace("reading.", "now.")}, coalesce(measured.subject = measured_before.subject AND measured.subject <> '', false),
       {IS_SUBJECT}, series_state.resolution
  FROM series
  LEFT JOIN series_state ON series_state.series_id = series.id
  LEFT JOIN step ON step.series_id = series.id AND step.commit_id = %(commit)s AND step.reference_id = %(before)s
       AND NOT step.stale
  LEFT JOIN reading before ON before.commit_id = %(before)s AND before.series_id = series.id
  LEFT JOIN reading now ON now.commit_id = %(commit)s AND now.series_id = series.id
  LEFT JOIN measured measured_before ON measured_before.id = before.measured_id
  LEFT JOIN measured ON measured.id = now.measured_id
 WHERE series.case_id = %(case)s AND series.machine_id = %(machine)s
 ORDER BY series.variant, series.metric
"""  # noqa: S608 - our own words
_NOT_JUDGED: Final = Judgement("ambiguous", reason="What changed here is being computed.")
# In raw SQL, so that a planner that expects many commits to wait does not go through all those of the project.
_UNPROJECTED: Final = "(SELECT count(*) FROM commit WHERE NOT projected AND project_id = project.id)"
_UNJUDGED: Final = f"""
(SELECT count(*)
   FROM (SELECT id FROM commit WHERE judged_by < {RULE} UNION SELECT commit_id FROM step WHERE stale) unjudged,
        LATERAL (SELECT project_id FROM commit WHERE id = unjudged.id AND projected OFFSET 0) its
  WHERE its.project_id = project.id)
"""  # noqa: S608 - our own words
_IS_ASKED: Final = or_(bindparam("name", type_=Text).is_(None), Project.name == bindparam("name", type_=Text))
_WAITING: Final = (
    select(
        Project,
        *(case((_IS_ASKED, literal_column(counted, BigInteger)), else_=0) for counted in (_UNPROJECTED, _UNJUDGED)),
    )
    .where(or_(_IS_ASKED, bindparam("others", type_=Boolean)))
    .order_by(Project.name)
)
_SERIES_AT: Final = WIDTH
_OLDER_AT: Final = _SERIES_AT + len(StepSeries._fields)
_PLACE_AT: Final = _OLDER_AT + len(StepCommit._fields)
_BEFORE_AT: Final = _PLACE_AT + 2
_NOW_AT: Final = _BEFORE_AT + READING_WIDTH
_KNOWN_WIDTH: Final = _NOW_AT + READING_WIDTH
_STEP_END: Final = 9 + WIDTH
_BEFORE_END: Final = _STEP_END + 1 + READING_WIDTH


class WaitingCommits(NamedTuple):
    """Counts of commits that have no readings yet, and of others whose changes are not known yet."""

    unprojected: int
    unjudged: int


async def waiting_commits(session: AsyncSession, project: str | None, *, others: bool = False) -> WaitingCommits:
    """The work left for a task on a project, or on all; the session, which only reads, knows the project from then on.

    With `others` it knows which projects there are besides. Index: uq_project_name, ix_commit_unprojected, ix_commit_judged_by,
    ix_step_stale, pk_commit.
    """
    rows = (await session.execute(_WAITING, {"name": project, "others": others})).all()
    remember_projects(session, [row[0] for row in rows], are_all=others or project is None)
    return WaitingCommits(sum(row[1] for row in rows), sum(row[2] for row in rows))


def news_at(
    machine_id: MachineId, commit_ids: Collection[int], *, case_id: int | None = None
) -> Query[Sequence[StepWithReadings]]:
    """The news at some commits of a project that was found, on a machine, of one case or all, newest first.

    Index: ix_step_news_at, pk_series, pk_series_state, pk_case, pk_commit, pk_reading, pk_measured.
    """
    values = {"commits": statements.array_of(commit_ids), "machine": machine_id, "case": case_id, "most": MOST_NEWS}
    return Query(_NEWS_AT, values, _known, width=_KNOWN_WIDTH)


def commits_referred_to(machine_id: MachineId, commit_ids: Collection[int]) -> Query[list[tuple[int]]]:
    """The commits that news at some commits is judged against, on a machine. Index: ix_step_news_at, pk_series."""
    return Query(_REFERRED_TO, {"commits": statements.array_of(commit_ids), "machine": machine_id}, list)


def news_of(series_ids: Collection[int], since: Place, *, most: int = MOST_NEWS) -> Query[Sequence[StepWithReadings]]:
    """The news of some series from a commit on, newest first. Index: ix_step_news_of, pk_series_state, pk_commit, pk_reading, pk_measured."""
    values = {"series": statements.array_of(series_ids), "ordered_at": since[0], "commit": since[1], "most": most}
    return Query(_NEWS_OF, values, _known, width=_KNOWN_WIDTH)


def steps_of_case(
    case_id: int, machine_id: MachineId, commit_id: int, before_id: int
) -> Query[Sequence[SeriesComparison]]:
    """All series of a case at a commit and at the one that it follows, with what is stored of the step.

    Index: uq_series_case_id_variant_metric_machine_id, pk_series_state, pk_step, pk_reading, pk_measured.
    """
    values = {"case": case_id, "machine": machine_id, "commit": commit_id, "before": before_id}
    return Query(_OF_CASE, values, _compared, width=_BEFORE_END + READING_WIDTH + 3)


def _compared(rows: Rows) -> Sequence[SeriesComparison]:
    results = []
    for row in rows:
        series_id, kind, case, machine, variant, metric, unit, direction, exact = row[:9]
        step = step_of(row[9:_STEP_END]) if row[9] is not None else None
        wrong, before, now = row[_STEP_END], _reading(row[_STEP_END + 1 : _BEFORE_END]), _reading(row[_BEFORE_END:-3])
        *_, is_equal_code, is_subject, resolution = row
        results.append(
            SeriesComparison(
                (case, machine, variant, metric),
                series_id,
                kind,
                unit,
                direction,
                exact,
                before,
                now,
                _NOT_JUDGED if step is None or step.judgement is None else as_resolved(step.judgement, resolution),
                wrong,
                is_equal_code,
                is_subject,
            )
        )
    return results


def _known(rows: Rows) -> Sequence[StepWithReadings]:
    return [
        StepWithReadings(
            step_of(row[:_SERIES_AT]),
            StepSeries._make(row[_SERIES_AT:_OLDER_AT]),
            StepCommit._make(row[_OLDER_AT:_PLACE_AT]),
            (row[_PLACE_AT], row[_PLACE_AT + 1]),
            _reading(row[_BEFORE_AT:_NOW_AT]),
            _reading(row[_NOW_AT:]),
        )
        for row in rows
    ]


def _reading(columns: Sequence[object]) -> Reading | None:
    return None if columns[0] is None else Reading.of(columns)
