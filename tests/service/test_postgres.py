"""The embedded Postgres: started, adopted, stopped; foreign folders refused in one sentence."""

import fcntl
import os
import pwd
import signal
import stat
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from pullback_service import migrations
from pullback_service.errors import PostgresError
from pullback_service.postgres import (
    LONGEST_SOCKET_FOLDER,
    MAJOR_VERSION,
    START_TIMEOUT_S,
    EmbeddedPostgres,
    _buffers,
    _can_reach,
    _fatal_lines,
    _socket_folder,
)
from pullback_service.roles import SERVICE_ROLE

FAST = {"fsync": "off"}
MIB = 1024 * 1024


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="pullback-postgres-") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "postgres"


@pytest.fixture
def server(folder):
    server = EmbeddedPostgres(folder, settings=FAST)
    yield server
    server.destroy()


@pytest.fixture(scope="module")
def running():
    """A server that works on its folder, for tests that leave it as it is."""
    with tempfile.TemporaryDirectory(prefix="pullback-postgres-") as name:
        Path(name).chmod(0o755)
        server = EmbeddedPostgres(Path(name) / "postgres", settings=FAST)
        server.start()
        yield server
        server.destroy()


def _version(url):
    with psycopg.connect(url) as connection:
        return connection.info.server_version // 10000


def test_it_starts_answers_and_is_stopped_by_whoever_asks(server, folder):
    assert not server.is_running()
    assert _version(server.start()) == MAJOR_VERSION
    assert server.is_running()
    assert EmbeddedPostgres(folder).stop()
    assert not server.is_running()
    assert not server.stop()


def test_service_and_worker_connect_as_a_role_that_owns_nothing(server):
    migrations.upgrade(server.start())
    with psycopg.connect(server.service_url()) as connection:
        assert connection.execute("SELECT session_user").fetchone() == (SERVICE_ROLE,)
        owned = "SELECT count(*) FROM pg_class WHERE relowner = session_user::regrole"
        assert connection.execute(owned).fetchone() == (0,)
    assert migrations.revisions(server.service_url()).match


def test_data_survives_a_restart(server):
    with psycopg.connect(server.start()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    server.stop()
    with psycopg.connect(server.start()) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


@pytest.mark.long
def test_a_new_database_has_memory_as_its_machine_has_it_until_its_owner_changes_it(server, folder):
    def buffers():
        with psycopg.connect(server.start()) as connection:
            return int(
                connection.execute("SELECT setting FROM pg_settings WHERE name = 'shared_buffers'").fetchone()[0]
            )

    assert 128 * MIB <= buffers() * 8192 <= min(1024 * MIB, max(psutil.virtual_memory().total // 4, 128 * MIB))
    server.stop()
    with (folder / "postgresql.conf").open("a") as configuration:
        configuration.write("shared_buffers = 77MB\n")
    assert buffers() * 8192 == 77 * MIB


@pytest.mark.parametrize(("memory", "buffers"), [(64, 128), (2048, 512), (65536, 1024)])
def test_a_new_database_has_a_quarter_of_the_memory_within_bounds(memory, buffers):
    assert _buffers(memory * MIB) == buffers * MIB


def test_only_the_owner_may_enter_the_data_folder(running):
    assert stat.S_IMODE(running.data_folder.stat().st_mode) == 0o700


def test_a_running_server_is_adopted_by_the_next_start(running):
    url, pid = running.url(), running.pid
    assert EmbeddedPostgres(running.data_folder).start() == url
    assert running.pid == pid


def test_starts_and_stops_of_one_folder_take_turns(folder):
    server = EmbeddedPostgres(folder)
    with server._alone(), server._lock_file.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.long
def test_two_starts_at_once_make_one_server(folder, server):
    with ThreadPoolExecutor() as pool:
        urls = list(pool.map(lambda _: EmbeddedPostgres(folder, settings=FAST).start(), range(4)))
    assert len(set(urls)) == 1


def test_a_killed_server_is_started_again_with_its_data(server):
    with psycopg.connect(server.start()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    os.kill(server.pid, signal.SIGKILL)
    with psycopg.connect(server.start()) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


@pytest.mark.long
def test_a_server_that_dies_while_it_is_waited_for_is_started_again(server, monkeypatch):
    server.start()
    os.kill(server.pid, signal.SIGKILL)
    looks = iter([True])  # the first look finds it alive, as it was for a moment
    monkeypatch.setattr(server, "is_running", lambda: next(looks, server.pid is not None))
    began = time.monotonic()
    with psycopg.connect(server.start()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert time.monotonic() - began < START_TIMEOUT_S / 2


@pytest.mark.long
def test_last_words_of_a_killed_servers_children_do_not_keep_it_from_starting(server):
    url = server.start()
    connections = [psycopg.connect(url) for _ in range(5)]
    children = [psutil.Process(connection.info.backend_pid) for connection in connections]
    for child in children:
        child.suspend()
    os.kill(server.pid, signal.SIGKILL)
    try:
        with ThreadPoolExecutor(1) as pool:
            started = pool.submit(server.start)
            for refused, child in enumerate(children):
                _until(lambda refused=refused: _refusals(server) > refused or started.done(), "a start to be refused")
                child.resume()  # which says in the same log why it ends
            with psycopg.connect(started.result(START_TIMEOUT_S)) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.resume()
        for connection in connections:
            connection.close()
    assert server.log_file.read_text().count("unexpected postmaster exit") == len(children)


def _refusals(server):
    return server.log_file.read_text().count("pre-existing shared memory")


def _until(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"waited 60 s for {what}"
        time.sleep(0.002)


def _shared_memory(server):
    """The files in memory that a server shares with its children, which have them mapped."""
    mapped = set()
    for process in (psutil.Process(server.pid), *psutil.Process(server.pid).children()):
        with suppress(psutil.NoSuchProcess):  # some live for a moment
            mapped |= {Path(place.path) for place in process.memory_maps()}
    return {path for path in mapped if path.name.startswith("PostgreSQL.")}


@pytest.mark.sample(every=2)
@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="shared memory has names on Linux alone")  # noqa: S108 - looked at
@pytest.mark.parametrize("again", [True, False], ids=["started again", "never started again"])
def test_a_killed_server_leaves_no_shared_memory_behind(server, again):
    server.start()
    shared = _shared_memory(server)
    assert shared
    os.kill(server.pid, signal.SIGKILL)
    if again:
        server.start()
        shared |= _shared_memory(server)
    server.destroy()
    assert {path for path in shared if path.exists()} == set()


@pytest.mark.parametrize("lines", [8, 4], ids=["whole", "being written"])
def test_a_pid_file_of_another_process_is_no_server(folder, lines):
    folder.mkdir()
    whole = [str(os.getpid()), str(folder), "0", "5432", str(folder), "", "0 0", "ready"]
    (folder / "postmaster.pid").write_text("\n".join(whole[:lines]) + "\n")
    assert not EmbeddedPostgres(folder).is_running()


@pytest.mark.long
def test_a_server_starts_where_the_number_in_the_pid_file_belongs_to_somebody_else(server, folder):
    server.start()
    lines = (folder / "postmaster.pid").read_text().splitlines()
    server.stop()
    (folder / "postmaster.pid").write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    assert not server.is_running()
    assert _version(server.start()) == MAJOR_VERSION


def test_a_pid_file_that_does_not_name_the_socket_yet_is_of_a_server_that_starts(running):
    file = running.data_folder.resolve() / "postmaster.pid"
    whole = file.read_text()
    file.write_text("\n".join([*whole.splitlines()[:4], "", ""]))  # as Postgres writes it first
    try:
        assert f"host={running.data_folder}&" in running.url()
    finally:
        file.write_text(whole)


def test_the_folder_of_a_socket_is_short_and_of_the_same_owner():
    with tempfile.TemporaryDirectory() as name:
        assert _socket_folder(Path(name)) == Path(name)
    with tempfile.TemporaryDirectory(prefix="pullback-" + "long" * 25) as name:
        short = _socket_folder(Path(name))
        try:
            assert len(str(short)) <= LONGEST_SOCKET_FOLDER < len(name)
            assert (stat.S_IMODE(short.stat().st_mode), short.stat().st_uid) == (0o700, Path(name).stat().st_uid)
            assert _socket_folder(Path(name)) == short
            short.chmod(0o755)
            with pytest.raises(PostgresError, match="belongs to another user"):
                _socket_folder(Path(name))
        finally:
            short.rmdir()


@pytest.mark.long
def test_a_path_too_long_for_a_socket_moves_the_socket():
    with tempfile.TemporaryDirectory(prefix="pullback-" + "long" * 25) as name:
        Path(name).chmod(0o755)
        server = EmbeddedPostgres(Path(name) / "postgres", settings=FAST)
        try:
            url = server.start()
            assert "long" not in url
            assert _version(url) == MAJOR_VERSION
        finally:
            server.destroy()


def test_a_folder_of_another_version_is_refused(folder):
    folder.mkdir()
    (folder / "PG_VERSION").write_text("16\n")
    with pytest.raises(PostgresError, match="holds the data of Postgres 16 and this release runs Postgres 18"):
        EmbeddedPostgres(folder).start()


def test_a_folder_with_other_files_is_refused_and_left_alone(folder):
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(PostgresError, match="holds other files"):
        EmbeddedPostgres(folder).start()
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


def test_the_reasons_in_a_log_are_those_of_this_start(tmp_path):
    log = tmp_path / "server.log"
    assert _fatal_lines(log, 0) == []
    log.write_text("2026-01-01 UTC [7] FATAL:  the old reason\n")
    start = log.stat().st_size
    with log.open("a") as file:
        file.write('2026-01-01 UTC [8] LOG:  begins\n2026-01-01 UTC [8] FATAL:  invalid value for "shared_buffers"\n')
    assert _fatal_lines(log, start) == ['invalid value for "shared_buffers"']


@pytest.mark.long
def test_a_setting_postgres_refuses_is_told_with_its_own_reason(folder):
    server = EmbeddedPostgres(folder, settings={"shared_buffers": "a lot"})
    try:
        with pytest.raises(PostgresError, match='invalid value for parameter "shared_buffers"'):
            server.start()
        assert not server.is_running()
    finally:
        server.destroy()


def test_destroying_leaves_nothing(folder):
    server = EmbeddedPostgres(folder, settings=FAST)
    server.start()
    pid = server.pid
    server.destroy()
    assert list(folder.parent.iterdir()) == []
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.05)


@pytest.mark.parametrize(("mode", "reached"), [(0o700, False), (0o710, False), (0o701, True), (0o755, True)])
def test_another_account_reaches_a_folder_if_it_may_walk_there(folder, mode, reached):
    stranger = pwd.struct_passwd(("stranger", "x", 2**30, 2**30, "", "/", ""))
    folder.mkdir()
    (folder / "inside").mkdir(mode=0o755)
    folder.chmod(mode)
    assert _can_reach(folder / "inside", stranger) is reached


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs Postgres as somebody else")
def test_for_root_a_closed_parent_stays_closed():
    with tempfile.TemporaryDirectory(prefix="pullback-closed-") as name:
        parent = Path(name)
        assert stat.S_IMODE(parent.stat().st_mode) == 0o700
        server = EmbeddedPostgres(parent / "postgres", settings=FAST)
        try:
            assert _version(server.start()) == MAJOR_VERSION
            assert stat.S_IMODE(parent.stat().st_mode) == 0o700
            home = (parent / "postgres").resolve()
            assert not home.is_relative_to(parent)
            assert stat.S_IMODE(home.stat().st_mode) == 0o700
        finally:
            server.destroy()
        assert not home.exists()
