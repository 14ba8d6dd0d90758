"""Two servers of Postgres, of which the first is killed: `DATABASE_URL` names both, as docs/operating.md has it."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import psutil
import psycopg
import pytest
from benchmarks.faults.database import wrong_in
from tests.system.clusters import free_port
from tests.system.products import until
from tests.system.test_faults import (
    UNFOLLOWED,
    World,
    _uploads_are_there_once,
    make_report,
    make_upload,
    open_http,
    rows_of,
    upload_all,
)

from pullback_service import postgres
from pullback_service.postgres import EmbeddedPostgres

pytestmark = pytest.mark.system

UPLOADS = 8  # of each round, sent by two clients
RETRYABLE = {"urn:pullback:problem:database-unavailable", "urn:pullback:problem:database-read-only"}


class Server:
    """One of the two servers, at a port of its own."""

    def __init__(self, folder):
        self.port = free_port()
        self._folder = folder
        settings = {"port": str(self.port), "listen_addresses": "127.0.0.1"}
        self.postgres = EmbeddedPostgres(folder, settings=settings)

    def url(self):
        """Its own address."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/pullback"

    def ask(self, statement):
        """The rows that it answers to one statement."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def kill(self):
        """End it as a power cut would."""
        postmaster = psutil.Process(self.postgres.pid)
        postmaster.kill()
        postmaster.wait(60)

    def follow(self, primary):
        """Start as the standby of another server, with a copy of its data; every acknowledged write of it is here from now on."""
        account = postgres._server_account()
        self.postgres.destroy()
        self._folder.mkdir(mode=0o700)
        if account is not None:
            os.chown(self._folder, account.pw_uid, account.pw_gid)
        copying = ["--pgdata", self._folder, "--write-recovery-conf", "--checkpoint=fast"]
        self.postgres._run("pg_basebackup", "--dbname", primary.url().removesuffix("pullback"), *copying)
        self.postgres._launch()
        primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.ask("SELECT pg_reload_conf()")
        until(lambda: primary.ask("SELECT sync_state FROM pg_stat_replication") == [("sync",)], 60, "the standby")

    def promote(self):
        """Take writes, and wait for no standby, for there is none."""
        self.ask("ALTER SYSTEM RESET synchronous_standby_names")
        self.ask("SELECT pg_promote()")


@pytest.fixture
def servers(folder):
    """A primary and its synchronous standby."""
    primary, standby = pair = [Server(folder / name) for name in ("a", "b")]
    primary.postgres.start()
    standby.follow(primary)
    yield pair
    for server in pair:
        server.postgres.destroy()


@pytest.fixture
def cluster(start_cluster, servers):
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    environment = {"DATABASE_URL": f"postgresql://postgres@{hosts}/pullback", "PULLBACK_LOG_LEVEL": "warning"}
    return start_cluster(environment, replicas=1, workers=1)


@pytest.fixture
def world(cluster):
    return World(cluster.urls)


@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.long(most_s=900))])
def test_a_failover_loses_no_acknowledged_write_and_restarts_nothing(cluster, servers, world, rounds):
    (url,) = cluster.urls
    uploads, processes = [], [replica.process.pid for replica in cluster.processes]
    primary, standby = servers
    for number in range(rounds):
        if number:
            servers[number % 2 - 1].follow(servers[number % 2])
            primary, standby = servers[number % 2], servers[number % 2 - 1]
            primary.ask(  # who connects anew finds the one that takes writes, whichever is named first
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pullback%'"
            )
        fresh = [make_upload(number * UPLOADS + each) for each in range(UPLOADS)]
        uploads += fresh
        with ThreadPoolExecutor(2) as pool:
            sending = [pool.submit(upload_all, world, fresh[each::2], f"{number} {each}") for each in range(2)]
            until(lambda fresh=fresh: any(upload.receipts for upload in fresh), 60, "an upload before the fault")
            primary.kill()
            reads_go_on_and_writes_are_503(url)
            assert not all(each.done() for each in sending)
            standby.promote()
            for each in sending:
                each.result()
    assert world.surprises == []
    rows = rows_of(standby)
    until(lambda: rows(UNFOLLOWED) == [(0,)], 120, "what follows uploads")
    _uploads_are_there_once(rows, uploads)
    assert wrong_in(rows) == []
    assert [replica.process.pid for replica in cluster.processes if replica.process.poll() is None] == processes
    assert "unexpected_error" not in cluster.said()


def reads_go_on_and_writes_are_503(url):
    """Ask until reads come from the standby and a write was refused there; before they are 503 as well, and say when to come again."""
    report = json.dumps(make_report(10**6)).encode()
    with open_http() as http:

        def told(answer):
            if answer.status_code == 503:
                assert answer.json()["type"] in RETRYABLE, answer.text
                assert int(answer.headers["Retry-After"]) > 0
            return answer.status_code

        until(lambda: told(http.get(f"{url}/api/v1/projects")) == 200, 60, "reads from the standby")
        refused = http.post(f"{url}/api/v1/reports", content=report)
        assert told(refused) == 503
        assert refused.json()["title"] == "The database takes no writes"
        assert told(http.get(f"{url}/api/v1/projects")) == 200
        assert told(http.get(f"{url}/readyz")) == 200
