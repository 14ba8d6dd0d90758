"""The projection of readings to steps: kept with every upload, made again where something else changed.

A step is a function of two readings, of what uploads state of their commits, of wrong gradients and of the software under both
(`judged_series`); the commit that it is judged against is a function of the graph and of where its series has readings
(`reference_commits.py`). Whoever changes any of these names the (series, commit) pairs, and those are judged again in the same transaction.
Transactions of one project that judge take turns, so that each sees the readings of the one before.

Commits that were not judged by the present version of the rule (`commit.judged_by`), and steps that are `stale`, are worked off by a
task, a few in a transaction, while uploads go on. Nothing of a project is judged before all its commits are projected.
"""

from array import array
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final, LiteralString
from uuid import UUID

import numpy as np
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.graph_changes import has_graph_changed
from pullback_service.database import Database
from pullback_service.ids import ProjectId
from pullback_service.readings.queries import columns_of
from pullback_service.row_arrays import insert_rows
from pullback_service.rule_version import RULE
from pullback_service.steps.invalidation import later_steps, mark_graph_changes
from pullback_service.steps.judging import judge_pairs
from pullback_service.steps.reference_commits import Pair, ReferenceCommit, ancestors_of, followed_by
from pullback_service.steps.step import COLUMNS, step_of
from pullback_service.steps.step_rows import INSERT_STEPS, row

AT_ONCE: Final = 5_000
"""Steps that are judged at once. So many of other commits are judged with an upload, in about a second; more wait for the task."""
OWN_AT_ONCE: Final = 20_000
"""Steps of an upload's own that are judged with it, in about two seconds."""
COMMITS_AT_ONCE: Final = 50
PAIRS_AT_ONCE: Final = 10_000
"""Pairs in one transaction of the task. Consecutive commits are read once; uploads of the project wait for half a second."""
NEW: Final = 0
"""Stands for the version of the rule in stale steps of readings that nobody judged yet."""

_LOCK: Final[LiteralString] = "SELECT pg_advisory_xact_lock(hashtextextended(%(steps)s, 0))"
_STATE: Final[LiteralString] = """
  WITH touched AS MATERIALIZED (
       SELECT id, project_id, sha, ordered_at FROM commit WHERE id = ANY (%(commits)s::bigint[])),
       way AS (
       SELECT id AS start, id, ordered_at, 0 AS depth FROM touched
        UNION ALL
       SELECT touched.id, parent.id, parent.ordered_at, 1
         FROM touched
         JOIN commit_parent told ON told.commit_id = touched.id AND told.position = 0
         JOIN commit parent ON parent.project_id = touched.project_id AND parent.sha = told.parent_sha)
SELECT EXISTS (SELECT FROM commit WHERE NOT projected AND project_id = %(project)s),
       EXISTS (SELECT FROM step WHERE stale),
       EXISTS (SELECT FROM comparison),
       EXISTS (SELECT FROM comparison WHERE candidate_id = ANY (%(commits)s::bigint[]))
       OR EXISTS (SELECT FROM comparison WHERE reference_id = ANY (%(commits)s::bigint[])),
       EXISTS (
         SELECT FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) pair (series_id, commit_id)
           JOIN step USING (series_id, commit_id)),
       ARRAY (
         SELECT touched.id
           FROM touched
          WHERE EXISTS (
                  SELECT FROM commit
                   WHERE commit.project_id = %(project)s
                     AND (commit.ordered_at, commit.id) > (touched.ordered_at, touched.id))
             OR EXISTS (SELECT FROM commit_parent WHERE parent_sha = touched.sha)
             OR EXISTS (SELECT FROM comparison WHERE candidate_id = touched.id)
             OR EXISTS (SELECT FROM comparison WHERE reference_id = touched.id)
             OR EXISTS (SELECT FROM step WHERE reference_id = touched.id AND commit_id <> touched.id)),
       ARRAY (SELECT start FROM way ORDER BY start, depth),
       ARRAY (SELECT id FROM way ORDER BY start, depth),
       ARRAY (SELECT ordered_at FROM way ORDER BY start, depth)
"""
_STALE: Final[LiteralString] = """
SELECT step.series_id, step.commit_id, min(step.rule)
  FROM step
  JOIN series ON series.id = step.series_id
 WHERE step.stale AND series.project_id = %(project)s
 GROUP BY step.series_id, step.commit_id
HAVING min(step.rule) >= %(oldest)s
 LIMIT %(most)s
"""
_MARK: Final[LiteralString] = """
UPDATE step SET stale = true, rule = least(step.rule, %(rule)s)
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) touched (series_id, commit_id)
 WHERE step.series_id = touched.series_id AND step.commit_id = touched.commit_id AND (NOT step.stale OR step.rule > %(rule)s)
"""
_WAIT: Final[LiteralString] = """
INSERT INTO step (series_id, commit_id, reference_id, via, rule, news, stale, provisional)
SELECT series_id, commit_id, commit_id, 'none', %(rule)s, false, true, false
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) touched (series_id, commit_id)
 WHERE NOT EXISTS (SELECT FROM step WHERE (step.series_id, step.commit_id) = (touched.series_id, touched.commit_id))
"""
_REMOVE: Final[LiteralString] = """
DELETE FROM step
 USING unnest(%(series)s::bigint[], %(commits)s::bigint[]) touched (series_id, commit_id)
 WHERE step.series_id = touched.series_id AND step.commit_id = touched.commit_id
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
  WITH newest AS MATERIALIZED (
       SELECT project_id
         FROM commit
        WHERE judged_by < %(rule)s
          AND NOT EXISTS (SELECT FROM commit other WHERE NOT other.projected AND other.project_id = commit.project_id)
        ORDER BY id DESC
        LIMIT 1)
SELECT id, commit.project_id, judged_by
  FROM commit, newest
 WHERE commit.project_id = newest.project_id AND judged_by < %(rule)s
 ORDER BY id DESC
 LIMIT %(most)s
   FOR NO KEY UPDATE OF commit SKIP LOCKED
"""
_JUDGED: Final[LiteralString] = "UPDATE commit SET judged_by = %(rule)s WHERE id = ANY (%(commits)s::bigint[])"
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
    session: AsyncSession, project_id: ProjectId, pairs: Iterable[Pair] = (), *, reports: Collection[UUID] = ()
) -> None:
    """Steps of all that a transaction touches, and of whatever is stale, as far as it is little; the task judges the rest.

    It touches by changed readings, by what `reports` state of two commits or say that failed, and by what became known of commits.
    The last thing that a transaction does but to write: whoever waits here for another one must hold nothing that it needs.
    Index: ix_commit_unprojected, ix_step_stale, ix_commit_history, ix_commit_parent_parent_sha, ix_comparison_candidate,
    ix_comparison_reference_id, ix_step_reference_id_series_id; as `followed_by`, `later_steps`, `judge_pairs`.
    """
    touched = set(pairs)
    if reports:
        touched |= await pairs_stated_by(session, reports)
    if not touched and not has_graph_changed(session):
        return
    await _take_turn(session, project_id)
    await mark_graph_changes(session, project_id)
    if len(touched) > OWN_AT_ONCE:
        pieces = in_order(touched)
        touched = set(next(pieces))
        for piece in pieces:
            await _let_wait(session, piece, NEW)
    state = await statements.row(session, _STATE, columns_of(touched) | {"project": project_id})
    assert state is not None  # noqa: S101 - a statement of one row
    waits, has_stale, any_compared, is_compared, is_judged, inner, *way = state
    followed = await followed_by(session, touched, ancestors_of(zip(*way, strict=True), 1))
    later = await _touched_by(session, followed, frozenset(inner), any_compared=any_compared) - touched
    if waits:  # the task judges these once it is known what they follow
        await _let_wait(session, later, RULE)
        await _let_wait(session, touched, NEW)
        return
    if len(later) > AT_ONCE:
        await _let_wait(session, later, RULE)
        later = set()
    elif has_stale:
        # Readings that nobody judged yet are left: what follows them has to be looked for.
        most = AT_ONCE - len(later)
        values = {"project": project_id, "oldest": NEW + 1, "most": most + 1}
        stale = await statements.rows(session, _STALE, values)
        if len(stale) <= most:
            later |= {(series, commit) for series, commit, _ in stale} - touched
    followed = {**followed, **await followed_by(session, later)}
    is_compared, is_judged = is_compared or bool(later), is_judged or bool(later)
    await _write(session, touched | later, followed, is_compared=is_compared, is_judged=is_judged)


def in_order(pairs: set[Pair]) -> Iterator[list[Pair]]:
    """Pairs of a few commits, sorted, commit by commit, `OWN_AT_ONCE` at a time; the set is empty afterwards.

    200,000 pairs sorted at once keep every other thread waiting for 0.2 s, and for 40 ms when they are let go at once.
    """
    of_commits: dict[int, array[int]] = defaultdict(partial(array, "q"))
    while pairs:
        series, commit = pairs.pop()
        of_commits[commit].append(series)
    remaining = (
        (series, commit) for commit in sorted(of_commits) for series in np.sort(np.array(of_commits[commit])).tolist()
    )
    while piece := [*islice(remaining, OWN_AT_ONCE)]:
        yield piece


async def pairs_stated_by(session: AsyncSession, reports: Collection[UUID]) -> set[Pair]:
    """The pairs of which reports state two commits, or say that they failed. Index: ix_comparison_report_id, ix_failure_report_id."""
    results: set[Pair] = set()
    for statement in (_COMPARED_BY, _FAILED_IN):
        results |= set(await statements.rows(session, statement, {"reports": list(reports)}))
    return results


async def _let_wait(session: AsyncSession, pairs: Collection[Pair], rule: int) -> None:
    """Mark the steps of pairs, and make one of those that have none, so that the task finds them."""
    if pairs:
        for statement in (_MARK, _WAIT):
            await statements.run(session, statement, columns_of(pairs) | {"rule": rule})


async def _touched_by(
    session: AsyncSession,
    followed: Mapping[Pair, ReferenceCommit],
    inner: Collection[int],
    *,
    any_compared: bool = True,
) -> set[Pair]:
    """The pairs that may have to be judged again because these readings changed; `inner` are commits that others may follow."""
    result = await later_steps(session, [(pair, to) for pair, to in followed.items() if pair[1] in inner])
    if inner:
        measured = {series for series, _ in followed}
        compared = await statements.rows(session, _COMPARED_AT, {"commits": statements.array_of(inner)})
        result |= {pair for pair in compared if pair[0] in measured}
    if any_compared and (first := [series for (series, _), to in followed.items() if to.via == "none"]):
        # Whoever compared before there was a series did not find it.
        result |= set(await statements.rows(session, _COMPARED_OF, {"series": statements.array_of(first)}))
    return result


async def _take_turn(session: AsyncSession, project_id: int) -> None:
    await statements.run(session, _LOCK, {"steps": f"steps {project_id}"})


async def _write(
    session: AsyncSession,
    pairs: Collection[Pair],
    followed: Mapping[Pair, ReferenceCommit],
    *,
    is_compared: bool = True,
    is_judged: bool = True,
) -> None:
    """Judge pairs and store the steps, in place of stored ones if any pair `is_judged` already."""
    if pairs:
        steps = await judge_pairs(session, pairs, followed, is_compared=is_compared)
        if is_judged:
            await statements.run(session, _REMOVE, columns_of(pairs))
        await insert_rows(session, INSERT_STEPS, map(row, steps))


async def judge_next(session: AsyncSession) -> int:
    """Judge the newest commits that are not judged by the present rule, or else steps that are stale; how many commits or steps.

    Index: ix_commit_judged_by, ix_commit_unprojected, pk_reading, ix_comparison_candidate; as `judge_pairs`.
    """
    rows = await statements.rows(session, _UNJUDGED, {"rule": RULE, "most": COMMITS_AT_ONCE})
    if not rows:
        return await _judge_stale(session)
    await _take_turn(session, rows[0][1])
    done: list[int] = []
    pairs: list[Pair] = []
    late: set[int] = set()
    for commit_id, _, judged_by in rows:
        here = await _pairs_at(session, [commit_id])
        if done and len(pairs) + len(here) > PAIRS_AT_ONCE:
            break
        done.append(commit_id)
        pairs += sorted(here)
        if judged_by < 0:
            late.add(commit_id)
    for some in _in_parts(pairs):
        followed = await followed_by(session, some)
        await _mark_later(session, {pair: to for pair, to in followed.items() if pair[1] in late}, judged=pairs)
        await _write(session, some, followed)
    await statements.run(session, _JUDGED, {"rule": RULE, "commits": statements.array_of(done)})
    return len(done)


async def _judge_stale(session: AsyncSession) -> int:
    stored = await statements.row(session, _STALE_PROJECT, {})
    if stored is None:
        return 0
    await _take_turn(session, stored[0])
    stale = await statements.rows(session, _STALE, {"project": stored[0], "oldest": NEW, "most": AT_ONCE})
    pairs = {(series, commit): rule for series, commit, rule in stale}
    followed = await followed_by(session, pairs)
    await _mark_later(session, {pair: to for pair, to in followed.items() if pairs[pair] == NEW}, judged=pairs)
    await _write(session, pairs, followed)
    return max(1, len(pairs))


async def _mark_later(
    session: AsyncSession, followed: Mapping[Pair, ReferenceCommit], *, judged: Collection[Pair]
) -> None:
    """Mark the steps that depend on readings stored in the meantime for later judging, except those `judged` in this transaction."""
    if followed:
        later = await _touched_by(session, followed, {commit for _, commit in followed})
        await _let_wait(session, later - set(judged), RULE)


async def _pairs_at(session: AsyncSession, commits: Collection[int]) -> set[Pair]:
    values = {"commits": statements.array_of(commits)}
    measured = await statements.rows(session, _MEASURED_AT, values)
    compared = await statements.rows(session, _COMPARED_AT, values)
    return {*measured, *(pair for pair in compared if pair[1] in commits)}


def _in_parts(pairs: Sequence[Pair]) -> Iterable[Sequence[Pair]]:
    return (pairs[start : start + PAIRS_AT_ONCE] for start in range(0, len(pairs), PAIRS_AT_ONCE))


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
    stored = await statements.row(session, _WAITING, {"rule": RULE})
    return stored[0] if stored else 0


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
