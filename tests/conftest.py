"""What every test shares: one BLAS thread, no colour codes, Postgres databases of its own for each test that asks, and
a headless Chromium.

One embedded Postgres serves a whole run, all xdist workers included: the first test that needs it starts it, the others
adopt it, and the process that started the run removes it. One database is migrated; each test gets a copy of it.

What a run writes lies in memory where there is room, unless TMPDIR names a place, and is removed at its end.
"""

import gc
import os
import shutil
import subprocess
import sys
import tempfile
from fcntl import LOCK_EX, flock
from functools import cache
from importlib.resources import files
from itertools import groupby, islice
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
import structlog
from hypothesis import HealthCheck, settings
from tests import deadlines, sampling
from tests.skipping import NoOtherSkips

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NO_COLOR", "1")
os.environ.setdefault("PULLBACK_HOST", "")  # no test draws an id into the home of whoever runs it
os.environ.setdefault("PULLBACK_CHECK", "1")  # the type check behind every pass of the compiler

if "PYTEST_XDIST_WORKER" in os.environ:
    # Coverage is for the tests' own processes: what they start would be slowed down, and some of that measures time.
    os.environ.pop("COVERAGE_PROCESS_START", None)

# Where CI runs, which its variable says, a property test tries the same examples every time, so that a change fails for
# what it changed; on a developer's machine it looks for new ones, and for more of them. Neither has a deadline: machines
# are shared.
settings.register_profile("explore", deadline=None, print_blob=True)
settings.register_profile(
    "ci",
    max_examples=25,
    deadline=None,
    print_blob=True,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # a verdict on the machine's load
)
settings.load_profile("ci" if os.environ.get("CI") else "explore")

# As the service has it. Left to itself structlog writes the local variables of every frame, which takes a second.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)

FOLDER_VARIABLE = "PULLBACK_TEST_FOLDER"
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of random name is made in it
ROOM_BYTES = 8 * 2**30
TEMPLATE = "pullback_template"
# Nothing of a test run has to survive a power cut.
FAST_AND_FORGETFUL = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "io_method": "sync",  # everything is in memory: asking another process to read it takes longer than reading it
    "shared_buffers": "128MB",  # all of them are looked through whenever a database is dropped
}


def pytest_addoption(parser):
    parser.addoption(
        "--renew-golden", action="store_true", help="write the golden files instead of comparing with them"
    )


@pytest.fixture
def renew_golden(request):
    return request.config.getoption("--renew-golden")


def _memory():
    """The folder that is memory, if what is made there may be run and there is room for everything.

    Hundreds of databases and repositories are made and deleted, of hundreds of files each. ext4 looks for a new file's
    place among all those deleted within the last minute: copying a database takes it 0.2 s of processor time, memory 0.02.
    """
    if "TMPDIR" in os.environ or not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK | os.X_OK):
        return None
    mounted = os.statvfs(MEMORY)
    free = min(mounted.f_bavail * mounted.f_frsize, psutil.virtual_memory().available)
    return MEMORY if free >= ROOM_BYTES and not mounted.f_flag & os.ST_NOEXEC else None


def pytest_configure(config):
    config.pluginmanager.register(deadlines)
    config.pluginmanager.register(sampling)
    if os.environ.get("CI"):
        config.pluginmanager.register(NoOtherSkips())
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = Path(tempfile.mkdtemp(prefix="pb-", dir=_memory()))
        folder.chmod(0o755)  # where root runs the tests, the server's own account must reach its data
        os.environ[FOLDER_VARIABLE] = str(folder)
        if folder.parent == MEMORY:
            os.environ["TMPDIR"] = str(folder)
            tempfile.tempdir = None  # so that it is looked up again
        os.environ["PULLBACK_CACHE_DIR"] = str(folder / "cache")  # the caller's own objects are no part of a test
        os.environ["PULLBACK_CACHE"] = "check"  # that the key of a native program says all that its text depends on


def pytest_unconfigure():
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = Path(os.environ.pop(FOLDER_VARIABLE))
        if (folder / "postgres").exists():
            from pullback_service.postgres import EmbeddedPostgres

            EmbeddedPostgres(folder / "postgres").destroy()
        shutil.rmtree(folder, ignore_errors=True)  # some tests make what cannot be read


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is collected stays to the end: nobody looks among those million objects for garbage, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# Folders whose tests start processes: seconds each, where others take milliseconds.
OF_PROCESSES = ("tests/runners", "tests/benchmarks", "tests/cli", "tests/engine/native/test_fences.py")


def _stage(item):
    """The place of a test in the order: the longest come first, and those of milliseconds last."""
    if item.nodeid.startswith("tests/dashboards/browser"):
        return 1
    if item.get_closest_marker("system"):
        return 0
    return 2 if item.nodeid.startswith(OF_PROCESSES) else 4 if item.nodeid.startswith("tests/engine") else 3


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Every worker begins with long tests and ends with short ones.

    xdist cuts the tests into as many stretches as there are workers, and who is done takes some from the end of another
    stretch. So the files of system tests, and of those that start processes, are dealt out; those of the browser stay
    together, for they share a service with a made history.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    begins, rest = [[] for _ in range(workers)], []
    for stage, of_stage in groupby(sorted(items, key=_stage), key=_stage):
        files = [list(of_file) for _, of_file in groupby(of_stage, key=lambda item: item.path)]
        for number, of_file in enumerate(files):
            if stage > 2:
                rest += of_file
            else:
                begins[-1 if stage == 1 else number % workers] += of_file
    left, taken = len(items), iter(rest)
    items.clear()
    for number, begun in enumerate(begins):
        size = left // (workers - number)
        items += begun + list(islice(taken, max(size - len(begun), 0)))
        left -= size
    items += taken


@pytest.fixture(scope="session", autouse=True)
def _certificates_are_read_once():
    """Not for each of a thousand clients, which speak to this machine alone: 27 ms of processor time."""
    import httpx._transports.default as transports

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transports, "create_ssl_context", cache(transports.create_ssl_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def _statements_are_compiled_once():
    """Not for each of a thousand databases that have an engine each: a quarter of a service test's processor time.

    SQLAlchemy keeps what it compiles by engine and dialect, so the engines of a process share both the first's.
    """
    import pullback_service.database as databases

    create, first = databases.create_async_engine, []

    def created(*arguments, **options):
        engine = create(*arguments, **options)
        sync = engine.sync_engine
        first.extend(() if first else (sync.dialect, sync._compiled_cache))
        sync.dialect, sync._compiled_cache = first
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(databases, "create_async_engine", created)
        yield


@pytest.fixture
def command(monkeypatch, capfd):
    """Run `pullback` in this process, in a folder: one of its own would import for half a second.

    For what a command says and does. That a shell can start it, and how it ends with signals, tests with processes see to.
    """
    from pullback_cli import main
    from pullback_runners.workloads import registry

    def run(*arguments, folder=None, **environment):
        registry.known_workloads()
        with monkeypatch.context() as patch:
            patch.setattr(registry, "_workloads", dict(registry._workloads))  # a file's workloads are those of this run
            patch.setattr(main, "die_with_named_parent", lambda: None)
            patch.setattr(sys, "argv", ["pullback", *map(str, arguments)])
            if folder is not None:
                patch.chdir(folder)
            for name, value in environment.items():
                patch.setenv(name, value)
            capfd.readouterr()
            with pytest.raises(SystemExit) as ended:
                main.main()
            return subprocess.CompletedProcess(arguments, ended.value.code or 0, *capfd.readouterr())

    return run


@pytest.fixture(scope="session")
def postgres_server():
    """The Postgres of this run."""
    from pullback_service.postgres import EmbeddedPostgres

    server = EmbeddedPostgres(Path(os.environ[FOLDER_VARIABLE]) / "postgres", settings=FAST_AND_FORGETFUL)
    server.start()
    return server


@pytest.fixture(scope="session")
def administration(postgres_server):
    """A connection that makes and drops databases."""
    import psycopg

    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def migrated_template(postgres_server, administration):
    """Name of a migrated database nobody connects to."""
    from pullback_service import migrations

    with (Path(os.environ[FOLDER_VARIABLE]) / "template.lock").open("a") as lock:
        flock(lock, LOCK_EX)
        if administration.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE]).fetchone():
            return TEMPLATE
        draft = f"{TEMPLATE}_draft"  # half-migrated ones never get the name
        administration.execute(f'DROP DATABASE IF EXISTS "{draft}"')
        administration.execute(f'CREATE DATABASE "{draft}"')
        migrations.upgrade(postgres_server.url(draft))
        administration.execute(f'ALTER DATABASE "{draft}" RENAME TO "{TEMPLATE}"')
    return TEMPLATE


def _fresh_database(server, administration, template):
    name = f"test_{uuid4().hex}"
    # By files, a third less than block by block through the log that a crash would be mended from.
    administration.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
    yield server.url(name)
    administration.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def database_url(postgres_server, administration, migrated_template):
    """Address of a migrated, empty database that only this test uses."""
    yield from _fresh_database(postgres_server, administration, migrated_template)


@pytest.fixture(scope="module")
def module_database_url(postgres_server, administration, migrated_template):
    """Address of a migrated database that the tests of one file share."""
    yield from _fresh_database(postgres_server, administration, migrated_template)


@pytest.fixture
def bare_database_url(postgres_server, administration):
    """Address of a database with nothing in it, not even the migrations."""
    yield from _fresh_database(postgres_server, administration, "template1")


def _chromium():
    """The system's Chromium, or none."""
    named = os.environ.get("PULLBACK_CHROMIUM")
    for name in (named, "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        if name and (found := shutil.which(name)):
            return found
    return None


FONTCONFIG = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><include ignore_missing="yes">{system}</include><dir>{inter}</dir></fontconfig>"""


@pytest.fixture(scope="session")
def fontconfig(tmp_path_factory):
    """A configuration of fontconfig: the system's fonts and Inter, which comes with the service."""
    file = tmp_path_factory.mktemp("fonts") / "fonts.conf"
    system = os.environ.get("FONTCONFIG_FILE", "/etc/fonts/fonts.conf")
    file.write_text(FONTCONFIG.format(system=system, inter=files("fontpkg_inter") / "files"), encoding="utf-8")
    return file


class Chromium:
    """The headless Chromium of a worker: started for the first test that asks, closed before one that drives no browser.

    Playwright keeps an event loop running in this thread, beside which no asynchronous test can run.
    """

    def __init__(self):
        self._playwright = self._browser = None

    def open(self, fonts):
        """The browser, which speaks to nobody but the application."""
        if self._browser is not None and self._browser.is_connected():
            return self._browser
        self.close()
        path = _chromium()
        if path is None:
            pytest.skip("NO BROWSER TESTS: no Chromium found; `apt install chromium`, or name one in PULLBACK_CHROMIUM")
        from playwright.sync_api import sync_playwright

        flags = (
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        )
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(
            executable_path=path, args=flags, env={**os.environ, "FONTCONFIG_FILE": str(fonts)}
        )
        return self._browser

    def close(self):
        """Close it, with the event loop."""
        if self._browser is not None:
            self._browser.close()
        if self._playwright is not None:
            self._playwright.stop()
        self._playwright = self._browser = None


CHROMIUM = Chromium()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if item.get_closest_marker("browser") is None:
        CHROMIUM.close()


def pytest_sessionfinish():
    CHROMIUM.close()


@pytest.fixture
def browser(request, fontconfig):
    """A headless Chromium with no window open."""
    assert request.node.get_closest_marker("browser") is not None, "a test that drives a browser is marked so"
    chromium = CHROMIUM.open(fontconfig)
    yield chromium
    for context in chromium.contexts:
        context.close()
