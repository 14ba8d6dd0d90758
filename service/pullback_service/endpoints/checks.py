"""Checking a commit against its merge base."""

from typing import Annotated

from fastapi import Query, Response

from pullback_service.addresses import API
from pullback_service.checks.queries import Measure, check
from pullback_service.checks.schemas import CheckAnswer
from pullback_service.conditional_requests import UNCHANGED, KnownAnswering
from pullback_service.errors import InvalidInputError, NotFoundError
from pullback_service.fields import Name
from pullback_service.problems import documented
from pullback_service.routers import api_router
from pullback_service.sessions import ReadSession

router = api_router(prefix=f"{API}/checks", tags=["comparisons"])


@router.get(
    "",
    summary="Check a commit against its merge base",
    response_model=CheckAnswer,
    responses={**UNCHANGED, **documented(NotFoundError, InvalidInputError)},
)
async def check_commit(
    session: ReadSession,
    answer: KnownAnswering,
    project: Name,
    head: Annotated[
        Name,
        Query(
            description="The commit that is checked: its hash, 7 digits of it or more, or a branch for its newest commit.",
            examples=["topic"],
        ),
    ],
    base: Annotated[
        Name | None,
        Query(
            description="The base: a branch or a commit; `head` is compared with the merge base of both. Default: the "
            "trunk of the project.",
            examples=["main"],
        ),
    ] = None,
    suite: Annotated[
        Name | None, Query(description="The suite of a queued job. Default: the suite that was measured.")
    ] = None,
    case: Annotated[
        list[Name] | None,
        Query(
            description="Cases that a job would measure: names, workloads, or globs over names. Default: all.",
            max_length=64,
        ),
    ] = None,
    variant: Annotated[
        list[Name] | None, Query(description="Variants that a job would measure. Default: all.", max_length=64)
    ] = None,
) -> Response:
    """Check a commit: its changes against its base, and what is missing to know them.

    It is compared with the merge base of `head` and `base`, and against nothing else: where that has no results, `lacks` says
    so, with the remedy. A commit that is on `base` already is compared with its first parent. Outcomes are those of
    `GET /comparisons`. Reading measures nothing: where `wants_job` is true, a job of the kind `compare` would (`POST /jobs`).
    """
    measure = Measure(suite, case or (), variant or ())
    return answer(CheckAnswer.of(await check(session, project, head, base, measure)))
