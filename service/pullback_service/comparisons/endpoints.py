"""Comparing two commits."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.answers import UNCHANGED, KnownAnswering
from pullback_service.comparisons import queries
from pullback_service.comparisons.judging import Outcome, trend
from pullback_service.comparisons.pairs import find_pair, missing_series
from pullback_service.comparisons.queries import Compared
from pullback_service.comparisons.schemas import (
    ComparedCommit,
    ComparedMetric,
    ComparedSeries,
    ComparisonPage,
    ComparisonSummary,
)
from pullback_service.comparisons.tables import COMPARISONS, ExportedComparison
from pullback_service.database import OpenedReading, ReadSession
from pullback_service.errors import InvalidInputError, NotAcceptableError, NotFoundError, refuse
from pullback_service.exports.formats import EXPORTED, WantedFormat
from pullback_service.exports.sending import in_batches, send
from pullback_service.fields import Name
from pullback_service.ids import ProjectId
from pullback_service.paging import HIGHEST_LIMIT, Cursor, Limit, read_cursor, write_cursor
from pullback_service.problems import documented
from pullback_service.projects.queries import project_by_name
from pullback_service.series.asking import ChosenSeries

router = APIRouter(prefix=f"{API}/comparisons", tags=["comparisons"])

OrderPlace = TypeAdapter(tuple[int, float, int])
NAMED = "Hash of a commit, 7 digits of it or more, or a branch for its newest commit with results."


@router.get(
    "",
    operation_id="compare_commits",
    summary="Compare two commits",
    response_model=ComparisonPage,
    responses={**EXPORTED, **UNCHANGED, **documented(NotFoundError, InvalidInputError, NotAcceptableError)},
)
async def compare_commits(
    session: ReadSession,
    opened: OpenedReading,
    answer: KnownAnswering,
    form: WantedFormat,
    choice: ChosenSeries,
    head: Annotated[Name, Query(description=f"The candidate: what is judged. {NAMED}", examples=["topic"])],
    base: Annotated[
        Name | None,
        Query(
            description=f"The reference: what it is held against. {NAMED} Default: the first parent of `head`.",
            examples=["main"],
        ),
    ] = None,
    outcome: Annotated[
        list[Outcome] | None, Query(max_length=9, description="Only these outcomes; the summary counts all.")
    ] = None,
    *,
    merge_base: Annotated[
        bool, Query(description="Hold `head` against the newest commit that it and `base` both descend from.")
    ] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Every series that either commit has, worst first: failed, worse, ambiguous, better, unchanged, not comparable.

    `?project=demo&base=main&head=topic&merge_base=true&metric=time` is what a branch did to time since it parted from
    main. Series are chosen as in `GET /series`.
    """
    if choice.project is None:
        refuse("project", "A comparison is made within a project: give `project`.")
    project = choice.project
    project_id = ProjectId((await project_by_name(session, project)).id)
    pair = await find_pair(session, project_id, base, head, merge_base=merge_base)
    reference, candidate = pair.reference.commit, pair.candidate.commit
    compared = await queries.compare(session, reference, candidate, choice)
    place = read_cursor(cursor, OrderPlace)
    wanted = [
        each
        for each in compared
        if (not outcome or each.judgement.outcome in outcome) and (place is None or each.order > place)
    ]

    async def read(session: AsyncSession, begin: int | None) -> tuple[Sequence[ExportedComparison], int | None]:
        begin = begin or 0
        shown = await queries.show(session, reference, candidate, wanted[begin : begin + HIGHEST_LIMIT])
        rows = [ExportedComparison(project, reference.sha, candidate.sha, ComparedSeries.of(each)) for each in shown]
        return rows, begin + HIGHEST_LIMIT if begin + HIGHEST_LIMIT < len(wanted) else None

    if form is not None:
        name = f"{project}-{reference.sha[:9]}-{candidate.sha[:9]}"
        return await send(form, COMPARISONS, in_batches(opened, read), name=name, headers=answer.headers)
    page = wanted[:limit]
    shown = await queries.show(session, reference, candidate, page)
    return answer(
        ComparisonPage(
            reference=ComparedCommit.of(pair.reference, series=sum(each.reference is not None for each in compared)),
            candidate=ComparedCommit.of(pair.candidate, series=sum(each.candidate is not None for each in compared)),
            summary=_summary(compared),
            notes=[*pair.notes, *await missing_series(session, project_id, pair, compared)],
            items=[ComparedSeries.of(each) for each in shown],
            next=write_cursor(page[-1].order) if len(wanted) > limit else None,
        )
    )


def _summary(compared: Sequence[Compared]) -> ComparisonSummary:
    counts: Counter[str] = Counter()
    for each in compared:
        direction = trend(each.judgement.outcome, bigger_is_better=each.bigger_is_better)
        counts[each.judgement.outcome] += 1
        counts[direction] += 1
    return ComparisonSummary(
        series=len(compared),
        worse=counts["worse"],
        better=counts["better"],
        unchanged=counts["same"] + counts["equal"],
        ambiguous=counts["ambiguous"],
        not_comparable=counts["not_comparable"],
        failed=counts["failed"],
        metrics=[ComparedMetric.of(metric) for metric in queries.summarize(compared)],
    )
