"""The objects an application has while it runs, as dependencies of endpoints."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final

import psycopg
from fastapi import Depends, FastAPI, Request
from sqlalchemy.exc import DBAPIError

from pullback_service.access.gate import Gate, address_of
from pullback_service.audit.trail import Line, write_lines
from pullback_service.bodies import Bodies
from pullback_service.database import AWAY, Database
from pullback_service.errors import AuthenticationError, ForbiddenError, NotFoundError
from pullback_service.exports.downloads import Downloads
from pullback_service.jobs.log_waits import LogWaits
from pullback_service.jobs.wakeups import JobBell
from pullback_service.logs import logger
from pullback_service.machines.noise_cache import NoiseMemory
from pullback_service.metrics import Metrics
from pullback_service.readiness import Readiness
from pullback_service.reports.intake import Intake
from pullback_service.roles import ALL_PROJECTS
from pullback_service.settings import Settings
from pullback_service.turns import ReadingTurns

LONGEST_REASON: Final = 300


@dataclass(frozen=True)
class Runtime:
    """One running application."""

    settings: Settings
    database: Database
    bell: JobBell
    log_waits: LogWaits
    gate: Gate
    metrics: Metrics
    intake: Intake
    reading_turns: ReadingTurns
    bodies: Bodies
    file_turns: ReadingTurns = field(default_factory=lambda: ReadingTurns(1))
    downloads: Downloads = field(default_factory=Downloads)
    noise: NoiseMemory = field(default_factory=NoiseMemory)
    readiness: Readiness = field(default_factory=Readiness)

    async def let_go(self) -> None:
        """Answer everybody who waits for something to happen, because the service stops."""
        self.log_waits.close()
        await self.bell.close()


def runtime_of(app: FastAPI) -> Runtime:
    """The runtime of an application that has started."""
    runtime = app.state.runtime
    assert isinstance(runtime, Runtime)  # noqa: S101 - the lifespan puts it there
    return runtime


def base_of(request: Request) -> str:
    """The address before each path in links that leave the service: the public one, or else the one that was asked."""
    state = getattr(request.scope.get("app"), "state", None)
    runtime: Runtime | None = getattr(state, "runtime", None)  # none where an error is shown before the start is over
    public = None if runtime is None else runtime.settings.public_url
    return (public or str(request.base_url)).rstrip("/")


async def _runtime(request: Request) -> Runtime:
    return runtime_of(request.app)


KnownRuntime = Annotated[Runtime, Depends(_runtime)]


# Each asks the request and not `KnownRuntime`: FastAPI solves a dependency's own dependencies each time that it is named,
# 0.04 ms for every one, although it then finds what they answered before.


async def _settings(request: Request) -> Settings:
    return runtime_of(request.app).settings


async def _bell(request: Request) -> JobBell:
    return runtime_of(request.app).bell


async def _log_waits(request: Request) -> LogWaits:
    return runtime_of(request.app).log_waits


@asynccontextmanager
async def authenticated(request: Request) -> AsyncIterator[None]:
    """Serve a request inside the block: who asks is known, and may, before anything else is looked at."""
    runtime = runtime_of(request.app)
    try:
        # Who asks is not known yet. Nothing is begun before somebody asks for a row.
        async with runtime.database.seeing(ALL_PROJECTS).writing() as session:
            caller = await runtime.gate.admit(request, session)
            if session.in_transaction():
                await session.commit()
        request.state.caller = caller
        yield
    except ForbiddenError as error:
        await _note_refusal(request, runtime, error)
        raise
    except NotFoundError as error:
        if not request.state.caller.anonymous:
            raise
        # Whether it does not exist or is not public is nobody's business.
        raise AuthenticationError(
            f"{error.detail.rstrip('.')}, or it is not public: send a token as `Authorization: Bearer TOKEN`, "
            "or sign in at /login."
        ) from error


async def _note_refusal(request: Request, runtime: Runtime, error: ForbiddenError) -> None:
    """Leave a line in the audit log of a caller who may not do what it asked for."""
    caller = getattr(request.state, "caller", None)
    action = getattr(request.scope.get("route"), "name", "")
    if caller is None or caller.anonymous or (caller.name, action) in runtime.gate.told_of:
        return
    runtime.gate.told_of.note((caller.name, action))
    line = Line(caller, action, request.url.path, None, address_of(request), {"refused": error.detail[:LONGEST_REASON]})
    try:
        async with runtime.database.seeing(ALL_PROJECTS).writing.begin() as session:
            await write_lines(session, [line])
    except (*AWAY, DBAPIError, psycopg.Error) as failure:  # the refusal stands, whatever becomes of its line
        logger.warning("refusal_not_noted", reason=type(failure).__name__)


async def _noise(request: Request) -> NoiseMemory:
    return runtime_of(request.app).noise


async def _intake(request: Request) -> Intake:
    return runtime_of(request.app).intake


KnownIntake = Annotated[Intake, Depends(_intake)]
KnownNoise = Annotated[NoiseMemory, Depends(_noise)]
KnownSettings = Annotated[Settings, Depends(_settings)]
KnownBell = Annotated[JobBell, Depends(_bell)]
KnownLogWaits = Annotated[LogWaits, Depends(_log_waits)]
