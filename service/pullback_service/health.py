"""Probes of liveness and readiness, and figures for Prometheus."""

from typing import Annotated, Literal

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from sqlalchemy import func, select

from pullback_service.metrics import Metrics
from pullback_service.models.jobs import JOB_STATES, Job
from pullback_service.problems import not_migrated, problem
from pullback_service.readiness import Readiness
from pullback_service.routers import api_router
from pullback_service.runtime import instance_of
from pullback_service.sessions import ReadSession

router = api_router(tags=["operation"])


class Health(BaseModel):
    """All is well; otherwise the answer is a problem with status 503."""

    status: Literal["alive", "ready"]


@router.get("/healthz")
async def report_liveness() -> Health:
    """The process answers. Nothing else is looked at: a database that is away is no reason to restart us."""
    return Health(status="alive")


@router.get("/readyz", response_model=Health)
async def report_readiness(readiness: Annotated[Readiness, instance_of(Readiness)]) -> Health | Response:
    """The process goes on, and the database answers and has the shape this release works with; asked once a second at most."""
    if readiness.stops:
        return problem(503, "stopping", "Stopping", "This process is about to end: ask another one.")
    result = await readiness.ask()
    if not result.serves:
        return not_migrated(result.remedy)
    return Health(status="ready")


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def report_metrics(metrics: Annotated[Metrics, instance_of(Metrics)], session: ReadSession) -> Response:
    """Figures in Prometheus' text format; of jobs, those of the caller's projects."""
    rows = await session.execute(select(Job.state, func.count().label("jobs")).group_by(Job.state))
    counted = {row.state: row.jobs for row in rows}
    for state in JOB_STATES:
        metrics.jobs.labels(state).set(counted.get(state, 0))
    return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)
