"""The projection of readings to steps: kept with every upload, made again where something else changed.

A step is a function of two readings, of what uploads state of their commits, of wrong gradients and of the software under both
(`judged_series`); the commit that it is judged against is a function of the graph and of where its series has readings
(`following.py`). Whoever changes any of these names the (series, commit) pairs, and those are judged again in the same transaction.
Transactions of one project that judge take turns, so that each sees the readings of the one before.

Commits that were not judged by the present version of the rule (`commit.judged_by`), and steps that are `stale`, are worked off by a
task, a few in a transaction, while uploads go on. Nothing of a project is judged before all its commits are projected.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.graph_changes import has_graph_changed
from pullback_service.comparisons.grounds import Failed, Grounds, Key, StatedRow, stated_series
from pullback_service.comparisons.judging import UNCHANGED, Judgement
from pullback_service.comparisons.outcomes import Shape
from pullback_service.comparisons.queries import judged_series
from pullback_service.database import Database
from pullback_service.ids import ProjectId
from pullback_service.machines.software import Software, software_under
from pullback_service.measured.queries import read_measured
from pullback_service.models.reports import WRONG_GRADIENT
from pullback_service.readings.queries import columns_of, readings_at
from pullback_service.readings.reading import Reading
from pullback_service.row_text import insert_lines
from pullback_service.rule import RULE
from pullback_service.steps.following import Followed, Pair, followed_by
from pullback_service.steps.step import COLUMNS, Step, step_of
from pullback_service.steps.step_text import INSERT_STEPS, line
from pullback_service.steps.touching import later_steps, mark_graph_changes

AT_ONCE: Final = 5_000
"""Steps that are judged at once. So many of other commits are judged with an upload, in about a second; more wait for the task."""

WITHOUT_A_BREAK: Final = 500
"""Steps that are judged before the event loop may serve others."""
NEW: Final = 0
"""Stands for the version of the rule in stale steps of readings that nobody judged yet."""

_LOCK: Final[LiteralString] = "SELECT pg_advisory_xact_lock(hashtextextended(%(steps)s, 0))"
_STATE: Final[LiteralString] = """
SELECT EXISTS (SELECT FROM commit WHERE NOT projected AND project_id = %(project)s),
       EXISTS (SELECT FROM step WHERE stale),
       EXISTS (SELECT FROM comparison),
       EXISTS (SELECT FROM comparison WHERE candidate_id = ANY (%(commits)s::bigint[]))
       OR EXISTS (SELECT FROM comparison WHERE reference_id = ANY (%(commits)s::bigint[])),
       ARRAY (
         SELECT touched.id
           FROM commit touched
          WHERE touched.id = ANY (%(commits)s::bigint[])
            AND (EXISTS (
                   SELECT FROM commit
                    WHERE commit.project_id = %(project)s
                      AND (commit.ordered_at, commit.id) > (touched.ordered_at, touched.id))
                 OR EXISTS (SELECT FROM commit_parent WHERE parent_sha = touched.sha)
                 OR EXISTS (SELECT FROM comparison WHERE candidate_id = touched.id)
                 OR EXISTS (SELECT FROM comparison WHERE reference_id = touched.id)
                 OR EXISTS (SELECT FROM step WHERE reference_id = touched.id AND commit_id <> touched.id)))
"""
_STALE: Final[LiteralString] = """
SELECT step.series_id, step.commit_id, min(step.rule)
  FROM step
  JOIN series ON series.id = step.series_id
 WHERE step.stale AND series.project_id = %(project)s
 GROUP BY step.series_id, step.commit_id
 LIMIT %(most)s
"""
_MARK: Final[LiteralString] = """
UPDATE step SET stale = true
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) touched (series_id, commit_id)
 WHERE step.series_id = touched.series_id AND step.commit_id = touched.commit_id
"""
_WAIT: Final[LiteralString] = """
INSERT INTO step (series_id, commit_id, reference_id, via, rule, news, stale, provisional)
SELECT series_id, commit_id, commit_id, 'none', %(rule)s, false, true, false
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) touched (series_id, commit_id)
ON CONFLICT (series_id, commit_id, reference_id) DO UPDATE SET rule = excluded.rule, stale = true
"""
_REMOVE: Final[LiteralString] = """
DELETE FROM step
 USING unnest(%(series)s::bigint[], %(commits)s::bigint[]) touched (series_id, commit_id)
 WHERE step.series_id = touched.series_id AND step.commit_id = touched.commit_id
"""
_SERIES: Final[LiteralString] = """
SELECT id, case_id, machine_id, variant, variant_kind, metric, unit, direction, exact
  FROM series
 WHERE id = ANY (%(series)s::bigint[])
"""
_FAILED: Final[LiteralString] = """
SELECT commit_id, case_id, machine_id, variant, kind, message
  FROM failure
 WHERE commit_id = ANY (%(commits)s::bigint[])
 ORDER BY kind = %(wrong)s, id
"""
_STATED: Final[LiteralString] = """
SELECT c.id, c.case_id, c.machine_id, c.variant, c.metric, c.reference_id, c.candidate_id, c.log_ratio, c.low, c.high, c.n,
       c.outcome, c.claim, c.margin, c.provisional, r.quality, r.dirty, s.id, s.variant_kind, s.unit, s.direction, s.exact
  FROM comparison c
  JOIN report r ON r.id = c.report_id
  JOIN series s
    ON s.case_id = c.case_id AND s.variant = c.variant AND s.metric = c.metric AND s.machine_id = c.machine_id
 WHERE (c.candidate_id = ANY (%(commits)s::bigint[]) OR c.reference_id = ANY (%(commits)s::bigint[]))
   AND c.reference_id <> c.candidate_id
 ORDER BY c.id
"""
_COMPARED_SERIES: Final[LiteralString] = """
SELECT s.id, ends.commit_id
  FROM comparison c
  JOIN series s
    ON s.case_id = c.case_id AND s.variant = c.variant AND s.metric = c.metric AND s.machine_id = c.machine_id,
       LATERAL (VALUES (c.reference_id), (c.candidate_id)) ends (commit_id)
 WHERE c.reference_id <> c.candidate_id AND {which}
"""
_COMPARED_BY: Final[LiteralString] = _COMPARED_SERIES.replace("{which}", "c.report_id = ANY (%(reports)s::uuid[])")
_COMPARED_AT: Final[LiteralString] = _COMPARED_SERIES.replace(
    "{which}",
    "(c.candidate_id = ANY (%(commits)s::bigint[]) OR c.reference_id = ANY (%(commits)s::bigint[]))",
)
_COMPARED_OF: Final[LiteralString] = _COMPARED_SERIES.replace("{which}", "s.id = ANY (%(series)s::bigint[])")
_FAILED_IN: Final[LiteralString] = """
SELECT s.id, f.commit_id
  FROM failure f
  JOIN series s ON s.case_id = f.case_id AND s.machine_id = f.machine_id AND s.variant = coalesce(f.variant, s.variant)
 WHERE f.report_id = ANY (%(reports)s::uuid[])
"""
_MEASURED_AT: Final[LiteralString] = (
    "SELECT series_id, commit_id FROM reading WHERE commit_id = ANY (%(commits)s::bigint[])"
)
_UNJUDGED: Final[LiteralString] = """
SELECT id, project_id, judged_by
  FROM commit
 WHERE judged_by < %(rule)s
   AND NOT EXISTS (SELECT FROM commit other WHERE NOT other.projected AND other.project_id = commit.project_id)
 ORDER BY id DESC
 LIMIT 1
   FOR NO KEY UPDATE OF commit SKIP LOCKED
"""
_JUDGED: Final[LiteralString] = "UPDATE commit SET judged_by = %(rule)s WHERE id = %(commit)s"
_STALE_PROJECT: Final[LiteralString] = """
SELECT series.project_id
  FROM step
  JOIN series ON series.id = step.series_id
 WHERE step.stale AND NOT EXISTS (SELECT FROM commit WHERE NOT projected AND project_id = series.project_id)
 LIMIT 1
"""
_WAITING: Final[LiteralString] = "SELECT count(*) FROM commit WHERE judged_by < %(rule)s"
_STORED: Final[LiteralString] = f"""
SELECT {COLUMNS}
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) wanted (series_id, commit_id)
  JOIN step USING (series_id, commit_id)
 WHERE NOT step.stale
"""  # noqa: S608 - our own words
_STALE_AMONG: Final[LiteralString] = """
SELECT series_id, commit_id
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) wanted (series_id, commit_id)
  JOIN step USING (series_id, commit_id)
 WHERE step.stale
"""


async def keep_steps(
    session: AsyncSession, project_id: ProjectId, pairs: Collection[Pair] = (), *, reports: Collection[UUID] = ()
) -> None:
    """Steps of all that a transaction touches, and of whatever is stale, as far as it is little.

    It touches by changed readings, by what `reports` state of two commits or say that failed, and by what became known of commits.
    The last thing that a transaction does but to write: whoever waits here for another one must hold nothing that it needs.
    Index: ix_commit_unprojected, ix_step_stale, ix_commit_history, ix_commit_parent_parent_sha, ix_comparison_candidate,
    ix_comparison_reference_id, ix_step_reference_id_series_id; as `followed_by`, `later_steps`, `judge_pairs`.
    """
    touched = set(pairs)
    if reports:
        named = {"reports": list(reports)}
        for statement in (_COMPARED_BY, _FAILED_IN):
            touched |= set(await statements.rows(session, statement, named))
    if not touched and not has_graph_changed(session):
        return
    await _take_turn(session, project_id)
    await mark_graph_changes(session, project_id)
    values = {"project": project_id, "commits": statements.array_of({commit for _, commit in touched})}
    state = await statements.row(session, _STATE, values)
    assert state is not None  # noqa: S101 - a statement of one row
    waits, has_stale, any_compared, is_compared, inner = state
    followed = await followed_by(session, touched)
    later = await _touched_by(session, followed, frozenset(inner), any_compared=any_compared) - touched
    if waits:  # the task judges these once it is known what they follow
        await _let_wait(session, later, RULE)
        await _let_wait(session, touched, NEW)
        return
    if has_stale:
        stale = await statements.rows(session, _STALE, {"project": project_id, "most": AT_ONCE + 1})
        later |= {(series, commit) for series, commit, _ in stale} - touched
    if len(later) > AT_ONCE:
        await _let_wait(session, later, RULE)
        later = set()
    followed = {**followed, **await followed_by(session, later)}
    await _write(session, touched | later, followed, is_compared=is_compared or bool(later))


async def _let_wait(session: AsyncSession, pairs: Collection[Pair], rule: int) -> None:
    """Mark the steps of pairs, and make one of those that have none, so that the task finds them."""
    if pairs:
        for statement in (_MARK, _WAIT):
            await statements.run(session, statement, columns_of(pairs) | {"rule": rule})


async def _touched_by(
    session: AsyncSession, followed: Mapping[Pair, Followed], inner: Collection[int], *, any_compared: bool = True
) -> set[Pair]:
    """The pairs that may have to be judged again because these readings changed; `inner` are commits that others may follow."""
    found = await later_steps(session, [(pair, to) for pair, to in followed.items() if pair[1] in inner])
    if inner:
        measured = {series for series, _ in followed}
        compared = await statements.rows(session, _COMPARED_AT, {"commits": statements.array_of(inner)})
        found |= {pair for pair in compared if pair[0] in measured}
    if any_compared and (first := [series for (series, _), to in followed.items() if to.via == "none"]):
        # Whoever compared before there was a series did not find it.
        found |= set(await statements.rows(session, _COMPARED_OF, {"series": statements.array_of(first)}))
    return found


async def _take_turn(session: AsyncSession, project_id: int) -> None:
    await statements.run(session, _LOCK, {"steps": f"steps {project_id}"})


async def _write(
    session: AsyncSession, pairs: Collection[Pair], followed: Mapping[Pair, Followed], *, is_compared: bool = True
) -> None:
    """Judge pairs and store what is found in the place of what was there."""
    if pairs:
        steps = await judge_pairs(session, pairs, followed, is_compared=is_compared)
        await statements.run(session, _REMOVE, columns_of(pairs))
        await insert_lines(session, INSERT_STEPS, map(line, steps))


class _Known(NamedTuple):
    """A series: its key and its shape."""

    key: Key
    shape: Shape


async def judge_pairs(
    session: AsyncSession, pairs: Collection[Pair], followed: Mapping[Pair, Followed], *, is_compared: bool = True
) -> Sequence[Step]:
    """The steps of (series, commit) pairs: of each reading one, and one for each other commit an upload compares it with.

    Without `is_compared` no upload compares any of the commits.

    Without `is_compared` no upload compares any of the commits.

    Index: pk_series, pk_reading, ix_failure_commit_id, ix_comparison_candidate, ix_comparison_reference_id; where counts differ as
    `software_under`.
    """
    pairs = set(pairs)
    known = await _series(session, {series for series, _ in pairs})
    commits = {commit for _, commit in pairs}
    stated = await _stated(session, commits) if is_compared else {}
    partners: dict[Pair, list[int]] = defaultdict(list)
    for (reference, candidate), of_pair in stated.items():
        for row in of_pair.values():
            if (row[0].series_id, candidate) in pairs:
                partners[row[0].series_id, candidate].append(reference)  # type: ignore[index] # found by its series
    ends = {(series, to.commit_id) for (series, _), to in followed.items()}
    ends |= {(series, reference) for (series, _), others in partners.items() for reference in others}
    readings = await readings_at(session, {*pairs, *ends})
    wanted: list[tuple[Pair, Followed]] = []
    for pair in pairs:
        to = followed[pair]
        if pair in readings:
            wanted.append((pair, to))
        main = to.commit_id if pair in readings else None
        wanted += [(pair, Followed(other, "compared")) for other in partners.get(pair, ()) if other != main]
    failures = await _failures(session, {*commits, *(to.commit_id for _, to in wanted)})
    differing = _counting_differently(wanted, readings, known)
    software = await software_under(session, differing) if differing else Software()
    measured = await read_measured(session, (each.measured_id for each in readings.values()))
    steps = []
    for place, ((series, commit), to) in enumerate(wanted):
        if place % WITHOUT_A_BREAK == 0:
            await asyncio.sleep(0)
        if to.via == "none":
            steps.append(Step(series, commit, commit, "none", news=False, judgement=None))
            continue
        one = known[series]
        rows = stated.get((to.commit_id, commit), {}).get(one.key, ())
        stated_of = {one.key: stated_series(one.key, rows, to.commit_id)} if rows else {}
        grounds = Grounds(stated_of, failures, software, measured)
        older, newer = readings.get((series, to.commit_id)), readings.get((series, commit))
        said = judged_series(one.key, one.shape, series, older, newer, to.commit_id, commit, grounds).judgement
        news = to.via == "compared" or _is_news(said, older, newer, exact=one.shape.exact)
        steps.append(Step(series, commit, to.commit_id, to.via, news, said))
    return steps


def _is_news(judgement: Judgement, older: Reading | None, newer: Reading | None, *, exact: bool) -> bool:
    """True where the series changed or may have: another count, whatever is doubted of it, and all that groups held."""
    if judgement.evidence == "paired":
        return True
    if exact and older is not None and newer is not None:
        return older.value != newer.value or judgement.outcome in {"less", "more"}
    return judgement.outcome not in {*UNCHANGED, "ambiguous"}


async def _series(session: AsyncSession, ids: Collection[int]) -> Mapping[int, _Known]:
    rows = await statements.rows(session, _SERIES, {"series": statements.array_of(ids)}, binary=True)
    return {
        id_: _Known((case, machine, variant, metric), Shape(variant, kind, metric, unit, direction, exact))
        for id_, case, machine, variant, kind, metric, unit, direction, exact in rows
    }


_Stated = Mapping[tuple[int, int], Mapping[Key, Sequence[StatedRow]]]


async def _stated(session: AsyncSession, commits: Collection[int]) -> _Stated:
    """The statements of uploads about commits, oldest first, by both orders of the two."""
    found: dict[tuple[int, int], dict[Key, list[StatedRow]]] = defaultdict(lambda: defaultdict(list))
    values = {"commits": statements.array_of(commits)}
    for row in map(StatedRow._make, await statements.rows(session, _STATED, values)):
        key = row.case_id, row.machine_id, row.variant, row.metric
        for pair in ((row.reference_id, row.candidate_id), (row.candidate_id, row.reference_id)):
            found[pair][key].append(row)
    return found


async def _failures(
    session: AsyncSession, commits: Collection[int]
) -> Mapping[tuple[int, int, int, str | None], Failed]:
    rows = await statements.rows(session, _FAILED, {"commits": statements.array_of(commits), "wrong": WRONG_GRADIENT})
    return {(commit, case, machine, variant): Failed(kind, told) for commit, case, machine, variant, kind, told in rows}


def _counting_differently(
    wanted: Iterable[tuple[Pair, Followed]], readings: Mapping[Pair, Reading], known: Mapping[int, _Known]
) -> Collection[UUID]:
    """Reports whose counts differ: of what is timed, values always do, and software is no doubt of it."""
    found = set()
    for (series, commit), to in wanted:
        older, newer = readings.get((series, to.commit_id)), readings.get((series, commit))
        if older is not None and newer is not None and older.value != newer.value and known[series].shape.exact:
            found |= {UUID(older.report_id), UUID(newer.report_id)}
    return found


async def judge_next(session: AsyncSession) -> int:
    """Judge the newest commit that is not judged by the present rule, or else steps that are stale; how many commits or steps.

    Index: ix_commit_judged_by, ix_commit_unprojected, pk_reading, ix_comparison_candidate; as `judge_pairs`.
    """
    found = await statements.row(session, _UNJUDGED, {"rule": RULE})
    if found is None:
        return await _judge_stale(session)
    commit_id, project_id, judged_by = found
    await _take_turn(session, project_id)
    pairs = await _pairs_at(session, [commit_id])
    for some in _in_parts(sorted(pairs)):
        followed = await followed_by(session, some)
        if judged_by < 0:
            await _mark_later(session, followed)
        await _write(session, some, followed)
    await statements.run(session, _JUDGED, {"rule": RULE, "commit": commit_id})
    return 1


async def _judge_stale(session: AsyncSession) -> int:
    found = await statements.row(session, _STALE_PROJECT, {})
    if found is None:
        return 0
    await _take_turn(session, found[0])
    stale = await statements.rows(session, _STALE, {"project": found[0], "most": AT_ONCE})
    pairs = {(series, commit): rule for series, commit, rule in stale}
    followed = await followed_by(session, pairs)
    await _mark_later(session, {pair: to for pair, to in followed.items() if pairs[pair] == NEW})
    await _write(session, pairs, followed)
    return max(1, len(pairs))


async def _mark_later(session: AsyncSession, followed: Mapping[Pair, Followed]) -> None:
    """Of readings that came while nobody judged: what they touch waits in turn."""
    commits = {commit for _, commit in followed}
    await _let_wait(session, await _touched_by(session, followed, commits) - followed.keys(), RULE)


async def _pairs_at(session: AsyncSession, commits: Collection[int]) -> set[Pair]:
    values = {"commits": statements.array_of(commits)}
    measured = await statements.rows(session, _MEASURED_AT, values)
    compared = await statements.rows(session, _COMPARED_AT, values)
    return {*measured, *(pair for pair in compared if pair[1] in commits)}


def _in_parts(pairs: Sequence[Pair]) -> Iterable[Sequence[Pair]]:
    return (pairs[start : start + AT_ONCE] for start in range(0, len(pairs), AT_ONCE))


async def judge_everything(database: Database) -> AsyncIterator[int]:
    """Judge all that is not judged by the present rule, each batch a transaction; how much was done so far."""
    done = 0
    while True:
        async with database.writing.begin() as session:
            judged = await judge_next(session)
        if not judged:
            return
        done += judged
        yield done


async def unjudged(session: AsyncSession) -> int:
    """The number of commits not judged by the present rule. Index: ix_commit_judged_by."""
    found = await statements.row(session, _WAITING, {"rule": RULE})
    return found[0] if found else 0


async def wrong_steps(session: AsyncSession, project_id: int, commits: Sequence[int]) -> set[Pair]:
    """The (series, commit) pairs of commits whose steps are missing, left over or not what their readings say.

    Uploads of the project wait meanwhile; what waits to be judged again is not looked at. Index: as `judge_next`, pk_step.
    """
    await _take_turn(session, project_id)
    wrong: set[Pair] = set()
    for some in _in_parts(sorted(await _pairs_at(session, commits))):
        computed = set(await judge_pairs(session, some, await followed_by(session, some)))
        values = columns_of(some)
        stored = {step_of(row) for row in await statements.rows(session, _STORED, values, binary=True)}
        stale = set(await statements.rows(session, _STALE_AMONG, values))
        wrong |= {each[:2] for each in computed ^ stored} - stale
    return wrong


async def renew_steps(session: AsyncSession, project_id: int, pairs: Collection[Pair]) -> None:
    """Judge pairs again. Index: as `judge_pairs`."""
    await _take_turn(session, project_id)
    for some in _in_parts(sorted(pairs)):
        await _write(session, some, await followed_by(session, some))
