"""What an application has at hand while it runs, as dependencies of endpoints."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, FastAPI, Request

from pullback_service.auth import Gate
from pullback_service.database import Database
from pullback_service.jobs.bell import JobBell
from pullback_service.metrics import Metrics
from pullback_service.settings import Settings


@dataclass(frozen=True)
class Runtime:
    """One running application."""

    settings: Settings
    database: Database
    bell: JobBell
    gate: Gate
    metrics: Metrics


def runtime_of(app: FastAPI) -> Runtime:
    """The runtime of an application that has started."""
    runtime = app.state.runtime
    assert isinstance(runtime, Runtime)  # noqa: S101 - the lifespan puts it there
    return runtime


def _runtime(request: Request) -> Runtime:
    return runtime_of(request.app)


KnownRuntime = Annotated[Runtime, Depends(_runtime)]


def _settings(runtime: KnownRuntime) -> Settings:
    return runtime.settings


def _bell(runtime: KnownRuntime) -> JobBell:
    return runtime.bell


async def authenticate(request: Request, runtime: KnownRuntime) -> None:
    """Dependency of the whole application."""
    runtime.gate.check(request)


KnownSettings = Annotated[Settings, Depends(_settings)]
KnownBell = Annotated[JobBell, Depends(_bell)]
