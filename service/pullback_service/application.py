"""The service as one FastAPI application. Pages are mounted on it by the command line, not here."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from pullback_service import health, problems
from pullback_service.access.authentication import Authenticator
from pullback_service.access.budgets import Budgets
from pullback_service.body_limits import BodyMemory
from pullback_service.database import Database
from pullback_service.endpoints.agents import router as agents
from pullback_service.endpoints.audit import router as audit
from pullback_service.endpoints.backfills import router as backfills
from pullback_service.endpoints.boards import router as boards
from pullback_service.endpoints.channels import router as channels
from pullback_service.endpoints.checks import router as checks
from pullback_service.endpoints.commits import router as commits
from pullback_service.endpoints.comparisons import router as comparisons
from pullback_service.endpoints.incidents import router as incidents
from pullback_service.endpoints.jobs import router as jobs
from pullback_service.endpoints.machines import router as machines
from pullback_service.endpoints.matrix import router as matrix
from pullback_service.endpoints.openapi import router as description
from pullback_service.endpoints.projects import router as projects
from pullback_service.endpoints.reports import router as reports
from pullback_service.endpoints.rules import router as rules
from pullback_service.endpoints.series import router as series
from pullback_service.endpoints.status import router as status
from pullback_service.endpoints.tokens import router as tokens
from pullback_service.exports.downloads import Downloads
from pullback_service.head_requests import HeadRequests
from pullback_service.jobs.job_listener import JobListener
from pullback_service.jobs.log_long_poll import LogWaits
from pullback_service.machines.noise_cache import NoiseMemory
from pullback_service.metrics import Metrics
from pullback_service.middleware import RequestMiddleware
from pullback_service.openapi import describe
from pullback_service.readiness import Readiness
from pullback_service.reports.upload_queue import UploadQueue
from pullback_service.request_turns import FileTurns, ReadingTurns
from pullback_service.roles import ALL_PROJECTS
from pullback_service.routers import EVERY_ROUTE
from pullback_service.runtime import Runtime, runtime_of
from pullback_service.settings import Settings, load_settings


def create_service(settings: Settings | None = None) -> FastAPI:
    """The API on a database. Connections open with the application's lifespan and close with it."""
    settings = settings or load_settings()
    url = settings.require_database_url()
    gate = Authenticator(
        required=settings.auth is not None,
        bootstrap=settings.token(),
        of_tokens=Budgets(settings.token_work, what="token"),
        of_addresses=Budgets(settings.address_work, what="address"),
    )
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = Database(url, pool_size=settings.pool_size)
        listener = JobListener(database.seeing(ALL_PROJECTS))
        listener.open()
        waits, intake = LogWaits(settings.max_streams), UploadQueue(database)
        metrics.streams.set_function(lambda: waits.held)
        app.state.runtime = Runtime(
            settings,
            gate,
            metrics,
            database,
            listener,
            waits,
            intake,
            ReadingTurns(max(1, settings.pool_size // 2)),
            FileTurns(),
            BodyMemory(settings.max_report_bytes),
            Downloads(),
            NoiseMemory(),
            Readiness(database),
        )
        try:
            yield
        finally:
            await let_go(app)
            await intake.close()
            await database.close()

    app = FastAPI(
        title="Pullback",
        summary="Continuous benchmarking for gradients.",
        version=version("pullback"),
        lifespan=lifespan,
        openapi_url=None,  # ours is asked for like everything else: counted, and with a tag
        docs_url=None,  # FastAPI's page loads its scripts from elsewhere, which our content security policy forbids
        redoc_url=None,
        **EVERY_ROUTE,
    )
    app.add_middleware(RequestMiddleware, metrics=metrics, known=gate.known, local=settings.auth is None)
    app.add_middleware(HeadRequests)
    problems.install(app)
    for router in _ROUTERS:
        app.router.routes.extend(router.routes)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]  # the way FastAPI documents for extending it
    return app


async def let_go(app: FastAPI) -> None:
    """Answer everybody who waits for something to happen, because the service stops."""
    runtime = runtime_of(app)
    runtime.get(LogWaits).close()
    await runtime.get(JobListener).close()


_ROUTERS = (
    projects,
    commits,
    machines,
    reports,
    rules,
    series,
    comparisons,
    checks,
    matrix,
    incidents,
    boards,
    jobs,
    backfills,
    agents,
    tokens,
    audit,
    channels,
    status,
    description,
    health.router,
)
