"""A service on a database of its own, a client that speaks to it in process, and reports made to measure."""

import copy
import math
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID, uuid4

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from psycopg import AsyncCursor
from tests.serving import served

from pullback_service.application import create_service
from pullback_service.database import Database
from pullback_service.roles import ALL_PROJECTS
from pullback_service.settings import Settings


@pytest.fixture
def anyio_backend():
    return "asyncio"


@asynccontextmanager
async def serving(settings):
    """A running service and a client that gets every answer, also those of unexpected errors."""
    app = create_service(settings)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://127.0.0.1", timeout=30
        ) as client,
    ):
        client.app = app
        yield client


@pytest.fixture
def start_service(database_url):
    """Start a service with other settings than the usual."""

    def start(**settings):
        return serving(Settings(database_url=database_url, **settings))

    return start


@pytest.fixture
async def client(start_service):
    async with start_service(
        heartbeat_s=0.05, lease_s=30, retry_pause_s=0, max_report_bytes=2**20, max_log_bytes=2**16
    ) as client:
        yield client


@pytest.fixture
def send(database_url):
    """Send a request and wait, for tests whose steps Hypothesis chooses: it wants to be in charge, as an event loop does."""
    settings = Settings(database_url=database_url)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving(settings)) as client:

        def request(method, url, **parts):
            return portal.call(partial(client.request, method, url, **parts))

        yield request


@pytest.fixture
async def database(database_url):
    database = Database(database_url).seeing(ALL_PROJECTS)
    yield database
    await database.close()


@pytest.fixture
async def session(database):
    """A transaction to look into the database with, or to change it: it is stored at the end."""
    async with database.writing.begin() as session:
        yield session


@pytest.fixture
def count_statements(database, monkeypatch):
    """Statements sent to the database inside the block, by whichever way."""

    @asynccontextmanager
    async def counting():
        async with database.engine.connect():
            pass  # the first connection of all asks what it speaks to
        statements = []
        execute = AsyncCursor.execute

        async def noted(cursor, statement, *rest, **options):
            if statement != PING and not str(statement).startswith("BEGIN"):  # which goes with the first statement
                statements.append(statement)
            return await execute(cursor, statement, *rest, **options)

        with monkeypatch.context() as watched:
            watched.setattr(AsyncCursor, "execute", noted)
            yield statements

    return counting


PING = ";"
"""What the pool asks of a connection before it lends it."""
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def sha_of(number):
    return f"{number:040x}"


def make_variant(name, *, seconds=(1.0, 1.1, 0.9), array_bytes=4096.0):
    return {
        "variant": name,
        "kind": "tier",
        "metrics": {
            "time": {"unit": "s", "clock": "cpu", "processes": list(seconds), "slices": [[value] for value in seconds]},
            "array_bytes": {"unit": "B", "value": array_bytes, "method": "nep49"},
            "native_bytes": {"unit": "B", "value": None, "method": None},
        },
        "program_hash": None,
        "plan": None,
    }


def make_case(workload="dense_bias_act", *, log_ratio=-0.5, **changes):
    fused = tuple(seconds * math.exp(log_ratio + 0.5) for seconds in (0.6, 0.7, 0.5))
    case = {
        "case": {"workload": workload, "params": {"n": 100, "act": "tanh"}, "dtype": "f4", "device": "cpu"},
        "gradient": {"ok": True, "max_rel_error": 1e-7, "oracle": "closed form"},
        "error": None,
        "variants": [make_variant("unfused"), make_variant("fused", seconds=fused, array_bytes=1024.0)],
        "paired": [
            {
                "variant": "fused",
                "baseline": "unfused",
                "metric": "time",
                "log_ratio": log_ratio,
                "low": log_ratio - 0.01,
                "high": log_ratio + 0.01,
                "n": 20,
                "outcome": "faster",
            },
            {
                "variant": "fused",
                "baseline": "unfused",
                "metric": "array_bytes",
                "log_ratio": -1.38,
                "low": None,
                "high": None,
                "n": None,
                "outcome": "less",
            },
        ],
    }
    return {**case, **changes}


def make_report(commit=1, *, cases=None, quality="clean", machine="box", **changes):
    """A whole report at the commit of this number, authored on the day of this number."""
    report = {
        "format": "pullback-report",
        "version": 1,
        # Of two that started at once the one with the higher id counts, which is to be the later one.
        "id": str(UUID(int=time.time_ns() << 64 | uuid4().int & (1 << 64) - 1)),
        "started_at": "2026-02-01T12:00:00Z",
        "duration_s": 12.5,
        "project": "demo",
        "commit": {
            "sha": sha_of(commit),
            "parents": [sha_of(commit - 1)],
            "branch": "main",
            "author": "A. Author",
            "authored_at": (FIRST_DAY + timedelta(days=commit)).isoformat(),
            "title": f"Change {commit}",
            "dirty": False,
        },
        "machine": {"fingerprint": f"fingerprint of {machine}", "name": machine, "facts": {"cpu": "fast", "cores": 2}},
        "harness": {"version": "0.1", "suite": "quick", "quality": quality, "preflight": {}, "job": None},
        "cases": [make_case()] if cases is None else cases,
        "comparisons": [],
    }
    return {**report, **copy.deepcopy(changes)}


@pytest.fixture
def report():
    """A report that holds."""
    return make_report()


@pytest.fixture(scope="session")
def reports():
    """The makers of reports, for tests that need several."""

    class Makers:
        report = staticmethod(make_report)
        case = staticmethod(make_case)
        variant = staticmethod(make_variant)
        sha = staticmethod(sha_of)

    return Makers


BOOTSTRAP = "open sesame"


@pytest.fixture
async def guarded(start_service, tmp_path):
    (tmp_path / "token").write_text(f"{BOOTSTRAP}\n")
    async with start_service(auth="token", token_file=tmp_path / "token") as client:
        yield client


@pytest.fixture
async def admin(guarded):
    """The same service, asked with the bootstrap token."""
    async with httpx.AsyncClient(
        transport=guarded._transport, base_url=guarded.base_url, headers={"authorization": f"Bearer {BOOTSTRAP}"}
    ) as client:
        client._transport = guarded._transport
        yield client
        client._transport = httpx.ASGITransport(app=None)  # the service's own client closes the transport


@pytest.fixture
def make_token(admin):
    """Make a token and return the headers that show it."""
    made = 0

    async def make(*scopes, **more):
        nonlocal made
        made += 1
        answer = await admin.post("/api/v1/tokens", json={"name": f"token {made}", "scopes": list(scopes), **more})
        assert answer.status_code == 201, answer.text
        return {"authorization": f"Bearer {answer.json()['token']}"}

    return make


@pytest.fixture
async def looking(database):
    """A session that looks into the database between requests: each commit lets it see what has happened since."""
    async with database.writing() as session:
        yield session


@pytest.fixture
def url(database_url):
    """Address of a service that listens."""
    app = create_service(Settings(database_url=database_url))
    with served(app, log_level="error", ws="none") as address:
        yield address
