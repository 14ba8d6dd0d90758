"""The disk of Postgres is full, really: its data is on a small file system of its own."""

import itertools
import subprocess
from contextlib import suppress

import psycopg
import pytest
from benchmarks.faults.database import wrong_in
from tests.system.products import until
from tests.system.test_faults import UNFOLLOWED, make_upload, open_http, rows_of

from pullback_service.errors import PostgresError
from pullback_service.postgres import EmbeddedPostgres

pytestmark = pytest.mark.system

SIZE_MIB = 224
POOL = 5
FULL = "The disk of the database is full"
AWAY = "The database does not answer"
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pullback'"


@pytest.fixture
def disk(folder):
    """A file system of its own, in memory."""
    place = folder / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m,mode=755", "pullback-test", place]
    done = subprocess.run(mounting, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"only root mounts a file system: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def server(disk):
    running = EmbeddedPostgres(disk / "postgres", settings={"max_wal_size": "64MB", "wal_recycle": "off"})
    running.start()
    yield running
    Ballast(disk).remove()  # without room it does not even stop
    running.destroy()


@pytest.fixture
def cluster(start_cluster, server):
    environment = {"DATABASE_URL": server.url(), "PULLBACK_POOL_SIZE": str(POOL), "PULLBACK_LOG_LEVEL": "warning"}
    return start_cluster(environment, replicas=1, workers=1)


class Ballast:
    """A file that fills the rest of the disk."""

    def __init__(self, disk):
        self._file = disk / "ballast"

    def fill(self):
        """Take every byte that is left."""
        with self._file.open("ab", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass

    def remove(self):
        """Give them back."""
        self._file.unlink(missing_ok=True)


class Caller:
    """Uploads one long report after the other, each until it is acknowledged, and reads."""

    def __init__(self, url, http):
        self.acknowledged = set()
        self._url, self._http = url, http
        self._uploads = (make_upload(number) for number in itertools.count(1, 24))
        self._next = next(self._uploads)

    def write(self):
        """Send the next upload; the title of the refusal, or None."""
        upload = self._next
        answer = self._http.post(
            f"{self._url}/api/v1/reports", content=upload.body, headers={"Idempotency-Key": upload.key}
        )
        if answer.is_success:
            self.acknowledged.add(upload.key)
            self._next = next(self._uploads)
        return title_of(answer)

    def read(self):
        """Ask for what is stored; the title of the refusal, or None."""
        return title_of(self._http.get(f"{self._url}/api/v1/reports"))


def title_of(answer):
    """The title of a refusal, which says when to come again; None if there is none."""
    if answer.is_success:
        return None
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["Retry-After"]) > 0
    return answer.json()["title"]


def write_log_until_there_is_no_room(server):
    """Begin one piece of the write-ahead log after the other, until Postgres panics for want of room for the next."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        try:
            for _ in range(SIZE_MIB // 16):  # of the size that a piece has
                connection.execute("SELECT pg_logical_emit_message(false, 'test', 'filled'), pg_switch_wal()")
        except psycopg.OperationalError as error:
            assert error.diag.severity_nonlocalized in {"PANIC", None}  # noqa: PT017 - None: it was gone before it said so
        assert connection.broken


def test_while_the_disk_is_full_writes_are_503_and_nothing_acknowledged_is_lost(cluster, server, disk):
    ballast, rows = Ballast(disk), rows_of(server)
    processes = [each.process.pid for each in cluster.processes]
    with open_http() as http:
        caller = Caller(cluster.urls[0], http)
        assert caller.write() is None
        ballast.fill()
        until(lambda: caller.write() == FULL, 60, "a refusal for the disk")
        for _ in range(3 * POOL):  # more often than there are connections
            assert caller.write() == FULL
            assert caller.read() is None
        assert rows(CONNECTIONS)[0][0] <= POOL + 1  # and the one that listens for jobs

        write_log_until_there_is_no_room(server)
        assert caller.write() in {FULL, AWAY}
        before = len(caller.acknowledged)

        ballast.remove()
        with suppress(PostgresError):  # it came back by itself, or is started by whoever made room
            server.start()
        until(lambda: caller.write() is None, 60, "uploads where there is room")
        assert caller.read() is None
        assert len(caller.acknowledged) > before
    until(lambda: rows(UNFOLLOWED) == [(0,)], 120, "what follows uploads")
    assert {key for (key,) in rows("SELECT idempotency_key FROM report")} == caller.acknowledged
    assert wrong_in(rows) == []
    assert [each.process.pid for each in cluster.processes if each.process.poll() is None] == processes
    assert "unexpected_error" not in cluster.said()
