"""Asking for backfills."""

from fastapi import Response

from pullback_service.addresses import API
from pullback_service.audit.trail import note
from pullback_service.backfills import queries
from pullback_service.backfills.schemas import BackfillAnswer, BackfilledCommit, BackfillRequest
from pullback_service.errors import InvalidInputError, NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.problems import documented
from pullback_service.projects.queries import project_by_name
from pullback_service.routers import api_router
from pullback_service.rows_to_models import filled
from pullback_service.sessions import WriteSession

router = api_router(prefix=f"{API}/backfills", tags=["jobs"])


@router.post(
    "",
    status_code=201,
    responses={
        200: {"model": BackfillAnswer, "description": "No job was made: a dry run, or nothing is missing"},
        **documented(NotFoundError, InvalidInputError),
    },
)
async def create_backfill(request: BackfillRequest, response: Response, session: WriteSession) -> BackfillAnswer:
    """Queue jobs for commits of a branch that have no results of a suite, behind everything else that waits.

    Asking again makes nothing twice: at most `limit` of these jobs are under way at once.
    """
    project = await project_by_name(session, request.project)
    backfill_result = await queries.backfill(session, ProjectId(project.id), request, dry_run=request.dry_run)
    jobs = [filled(BackfilledCommit, commit, commit=commit.sha) for commit in backfill_result.chosen]
    answer = filled(BackfillAnswer, request, backfill_result, jobs=jobs)
    is_changed = bool(answer.jobs) and not request.dry_run
    subject = f"branch {request.branch}"
    note(
        session,
        changed=is_changed,
        subject=subject,
        project=request.project,
        suite=request.suite,
        jobs=len(answer.jobs),
    )
    if not is_changed:
        response.status_code = 200
    return answer
