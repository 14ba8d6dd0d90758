"""Comparing two commits, or two machines."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.background_threads import in_background
from pullback_service.comparisons import queries
from pullback_service.comparisons.judgements import Outcomes, summarize
from pullback_service.comparisons.judging import Outcome
from pullback_service.comparisons.requests import ComparisonRequest, compare_as_asked
from pullback_service.comparisons.schemas import (
    ComparedCommit,
    ComparedMetric,
    ComparedSeries,
    ComparisonPage,
    ComparisonSummary,
    plain_compared,
)
from pullback_service.comparisons.tables import COMPARISONS, ExportedComparison
from pullback_service.conditional_requests import UNCHANGED, KnownAnswering
from pullback_service.errors import InvalidInputError, NotAcceptableError, NotFoundError, refuse
from pullback_service.exports.media_types import EXPORTED
from pullback_service.exports.streaming import in_batches, send
from pullback_service.fields import Name
from pullback_service.machines.queries import machine_by_id
from pullback_service.paging import HIGHEST_LIMIT, Cursor, Limit, read_cursor, write_cursor
from pullback_service.problems import documented
from pullback_service.routers import api_router
from pullback_service.series.query_parameters import ChosenSeries
from pullback_service.sessions import ExportForm, OpenedFile, ReadSession

router = api_router(prefix=f"{API}/comparisons", tags=["comparisons"])

OrderPlace = TypeAdapter(tuple[int, float, int])
NAMED = "Hash of a commit, 7 digits of it or more, or a branch for its newest commit with results."


@router.get(
    "",
    operation_id="compare_commits",
    summary="Compare two commits, or two machines",
    response_model=ComparisonPage,
    responses={**EXPORTED, **UNCHANGED, **documented(NotFoundError, InvalidInputError, NotAcceptableError)},
)
async def compare_commits(
    answer: KnownAnswering,
    form: ExportForm,
    session: ReadSession,
    opened: OpenedFile,
    choice: ChosenSeries,
    head: Annotated[Name, Query(description=f"The candidate. {NAMED}", examples=["topic"])],
    base: Annotated[
        Name | None,
        Query(
            description=f"The reference. {NAMED} Default: the first parent of `head`, "
            "or, if that has no results, the commit measured before it; a note says so.",
            examples=["main"],
        ),
    ] = None,
    outcome: Annotated[
        list[Outcome] | None, Query(max_length=11, description="Only these outcomes; the summary counts all.")
    ] = None,
    *,
    merge_base: Annotated[bool, Query(description="Compare `head` with the merge base of `head` and `base`.")] = False,
    head_machine: Annotated[
        Name | None,
        Query(description="Name, host or class of the machine; with `base_machine`, the machine of the candidate."),
    ] = None,
    base_machine: Annotated[
        Name | None,
        Query(
            description="The machine of the reference, at the commit `head` unless `base` names another; "
            "`machine` is then ignored.",
        ),
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Every series that either commit has, worst first.

    The order is: failed, worse, likely worse, ambiguous, better, likely better, unchanged, not comparable.

    `?project=demo&base=main&head=topic&merge_base=true&metric=time` is what a branch did to time since its merge base with
    main. Series are chosen as in `GET /series`.
    `?project=demo&head=main&base_machine=old&head_machine=new` compares two machines at one commit: counts
    compare, times do not, but for their ratios to the baseline. Series are then called by the machine that is judged.
    """
    if choice.project is None:
        refuse("project", "A comparison is made within a project: give `project`.")
    project = choice.project
    request = ComparisonRequest(head, base, merge_base, head_machine, base_machine, choice)
    answered = await compare_as_asked(session, project, request)
    pair, judged, outcomes = answered.pair, answered.judged, answered.judged.outcomes
    reference, candidate, across = pair.reference.commit, pair.candidate.commit, judged.across
    older = None if across is None else await machine_by_id(session, across.reference)
    newer = None if across is None else await machine_by_id(session, across.candidate)
    after = read_cursor(cursor, OrderPlace)
    selected = outcomes[outcomes.having(*outcome)] if outcome else outcomes
    selected = selected if after is None else selected[selected.after(after)]

    async def read(session: AsyncSession, begin: int | None) -> tuple[Sequence[ExportedComparison], int | None]:
        begin = begin or 0
        details = await queries.show(session, judged, selected[begin : begin + HIGHEST_LIMIT])
        rows = [
            ExportedComparison(project, reference.sha, candidate.sha, older, ComparedSeries.of(each))
            for each in details
        ]
        return rows, begin + HIGHEST_LIMIT if begin + HIGHEST_LIMIT < len(selected) else None

    if form is not None:
        name = f"{project}-{reference.sha[:9]}-{candidate.sha[:9]}"
        return await send(form, COMPARISONS, in_batches(session, opened, read), name=name, headers=answer.headers)
    page = selected[:limit]
    details = await queries.show(session, judged, page)
    return await in_background.after(
        session,
        lambda: answer.plain(
            {
                "items": [*map(plain_compared, details)],
                "next": write_cursor(page.order(len(page) - 1)) if len(selected) > limit else None,
                "reference": ComparedCommit.of(
                    pair.reference, older, series=int(outcomes.has_reference.sum())
                ).model_dump(),
                "candidate": ComparedCommit.of(
                    pair.candidate, newer, series=int(outcomes.has_candidate.sum())
                ).model_dump(),
                "summary": _summary(outcomes).model_dump(),
                "notes": answered.notes,
            }
        ),
    )


def _summary(outcomes: Outcomes) -> ComparisonSummary:
    counts = outcomes.counts()
    return ComparisonSummary(
        series=len(outcomes),
        worse=int(outcomes.trending("worse").sum()),
        likely_worse=int(outcomes.trending("likely_worse").sum()),
        likely_better=int(outcomes.trending("likely_better").sum()),
        better=int(outcomes.trending("better").sum()),
        unchanged=counts.get("same", 0) + counts.get("equal", 0),
        ambiguous=counts.get("ambiguous", 0),
        not_comparable=counts.get("not_comparable", 0),
        failed=counts.get("failed", 0),
        metrics=[ComparedMetric.model_validate(metric) for metric in summarize(outcomes)],
    )
