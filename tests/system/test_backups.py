"""Backups while uploads go on: of `pullback db backup`, and of a point in time with Postgres' own tools, as docs/operating.md has them."""

import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
from tests.system.clusters import Cluster
from tests.system.products import Product, until

from pullback_service import migrations, postgres

pytestmark = pytest.mark.system

GUIDE = Path(__file__).parents[2] / "docs" / "operating.md"
SAID = {"project": "demo", "commit": "3" * 40, "branch": "main", "machine": "ci"}
WRITERS = 2
PAUSE_S = 0.2  # between uploads of one client: without it they take the processors from what is backed up meanwhile


@pytest.fixture(scope="module")
def folder():
    """A folder that the account of Postgres may enter."""
    made = Path(tempfile.mkdtemp(prefix="pullback-backups-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def guide():
    """The examples of the section on a point in time, in their order."""
    section = GUIDE.read_text().partition("### Point-in-time recovery")[2]
    return re.findall(r"```(?:sql|sh)\n(.*?)```", section, re.DOTALL)


@pytest.fixture(scope="module")
def server(folder, guide):
    """A Postgres of its own that archives its log as the guide says."""
    (folder / "wal").mkdir()
    if (account := postgres._server_account()) is not None:
        os.chown(folder / "wal", account.pw_uid, account.pw_gid)
    running = postgres.EmbeddedPostgres(folder / "postgres")
    with psycopg.connect(running.start(), autocommit=True) as connection:
        for statement in guide[0].replace("/srv/wal", str(folder / "wal")).split(";\n"):
            connection.execute(statement)
        # The second server is started by the guide's command, which says nothing of sockets.
        connection.execute(f"ALTER SYSTEM SET unix_socket_directories = '{folder / 'sockets'}'")
        connection.execute("ALTER SYSTEM SET listen_addresses = ''")
    running.stop()
    running.start()
    yield running
    running.destroy()


@pytest.fixture(scope="module")
def cluster(server, folder):
    running = Cluster(Product(folder, None), {"DATABASE_URL": server.url()}, replicas=1, workers=1)
    yield running
    for process in running.processes:
        process.stop()


class Uploads:
    """Uploads by some clients at once, and those that were acknowledged: by key, when each was sent and when answered."""

    def __init__(self, url):
        self.acknowledged = {}
        self._url, self._done, self._session = url, threading.Event(), uuid4().hex[:8]

    def __enter__(self):
        self._pool = ThreadPoolExecutor(WRITERS)
        self._sending = [self._pool.submit(self._send, writer) for writer in range(WRITERS)]
        return self

    def __exit__(self, *_):
        self._done.set()
        self._pool.shutdown()
        for each in self._sending:
            each.result()

    def wait_for_more(self, more=10):
        """Wait until so many more were acknowledged, or one was refused."""
        wanted = len(self.acknowledged) + more
        until(lambda: len(self.acknowledged) >= wanted or any(each.done() for each in self._sending), what="uploads")

    def _send(self, writer):
        with httpx.Client(base_url=self._url, timeout=60, trust_env=False) as client:
            for number in itertools.takewhile(lambda _: not self._done.is_set(), itertools.count()):
                key, sent = f"{self._session}-{writer}-{number}", time.time()
                times = [1.0, 1.1 + sent % 1]  # the same file twice is one report
                result = {"command": f"c{writer}", "mean": 1.0, "user": 0.5, "system": 0.1, "times": times}
                body = json.dumps({"results": [result]})
                answer = client.post("/api/v1/reports", params=SAID, content=body, headers={"Idempotency-Key": key})
                assert answer.status_code == 201, answer.text
                self.acknowledged[key] = (sent, time.time())
                self._done.wait(PAUSE_S)


def stored(url):
    """The keys of all reports."""
    with psycopg.connect(url) as connection:
        return {key for (key,) in connection.execute("SELECT idempotency_key FROM report")}


def run(cluster, url, *arguments):
    """Run a command of ours on a database."""
    done = cluster.product.run(*arguments, environment={"DATABASE_URL": url})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def empty_database(server):
    """Return how to make an empty database of the same server."""
    made = []
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:

        def make():
            made.append(f"empty_{uuid4().hex}")
            connection.execute(f'CREATE DATABASE "{made[-1]}"')
            return server.url(made[-1])

        yield make
        for name in made:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.mark.long
def test_a_backup_made_while_uploads_go_on_has_all_that_were_acknowledged_before(
    cluster, server, empty_database, folder
):
    url, file = empty_database(), folder / "busy.backup"
    with Uploads(cluster.urls[0]) as uploads:
        uploads.wait_for_more()
        before = set(uploads.acknowledged)
        began = len(uploads.acknowledged)
        run(cluster, server.url(), "db", "backup", str(file))
        meanwhile = len(uploads.acknowledged) - began
        uploads.wait_for_more()
    run(cluster, url, "db", "restore", str(file))
    assert meanwhile > 0
    assert before <= stored(url)
    assert stored(url) < stored(server.url())
    run(cluster, url, "db", "check")


@pytest.mark.long
def test_a_backup_of_the_release_before_is_restored_and_migrated(cluster, server, empty_database, folder):
    with Uploads(cluster.urls[0]) as uploads:
        uploads.wait_for_more()
    now, older, restored = folder / "now.backup", empty_database(), empty_database()
    run(cluster, server.url(), "db", "backup", str(now))
    run(cluster, older, "db", "restore", str(now))
    migrations.downgrade(older, "-1")  # as the release before has it, with data of every table
    of_before = folder / "before.backup"
    run(cluster, older, "db", "backup", str(of_before))
    assert f"this release needs {migrations.head()}" in run(cluster, restored, "db", "restore", str(of_before))
    run(cluster, restored, "db", "upgrade")
    run(cluster, restored, "db", "check")
    assert set(uploads.acknowledged) <= stored(restored) == stored(older)


def test_a_point_in_time_before_an_accident_is_recovered(cluster, server, guide, folder):
    account = postgres._server_account()
    variables = {
        "PATH": f"{postgres._programs(account)}:/usr/bin:/bin",
        "DATABASE_URL": server.url(),
        "BASE": str(folder / "base"),
        "RECOVERED": str(folder / "recovered"),
        "WAL": str(folder / "wal"),
    }
    for name in ("base", "recovered", "sockets"):
        (folder / name).mkdir(mode=0o700)
        if account is not None:
            os.chown(folder / name, account.pw_uid, account.pw_gid)

    def paste(text, **more):
        """Run commands of the guide as Postgres' own user."""
        with tempfile.TemporaryFile() as output:  # a pipe would stay open for as long as the server runs
            done = subprocess.run(
                ["sh", "-euc", text],
                env={**variables, **more},
                cwd="/",
                user=account and account.pw_uid,
                group=account and account.pw_gid,
                extra_groups=account and [],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
            output.seek(0)
            assert done.returncode == 0, output.read().decode()

    _, base, recovery = guide
    with Uploads(cluster.urls[0]) as uploads:
        uploads.wait_for_more()
        began = len(uploads.acknowledged)
        paste(base)
        assert len(uploads.acknowledged) > began
        uploads.wait_for_more()
        instant = time.time()
        uploads.wait_for_more()
    for _ in range(10):  # the worker may hold locks of the same tables, which it took in another order
        with suppress(psycopg.errors.DeadlockDetected), psycopg.connect(server.url()) as connection:
            connection.execute("TRUNCATE project CASCADE")
            break
    assert stored(server.url()) == set()
    paste(recovery, INSTANT=time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(instant)) + f"{instant % 1:.6f}"[1:] + "+00")
    try:
        url = f"postgresql://postgres@/pullback?host={folder / 'sockets'}&port=5433"
        found = stored(url)
        assert {key for key, (_, answered) in uploads.acknowledged.items() if answered < instant} <= found
        assert {key for key, (sent, _) in uploads.acknowledged.items() if sent > instant}.isdisjoint(found)
        run(cluster, url, "db", "check")
    finally:
        paste('pg_ctl stop --wait --mode=immediate --pgdata="$RECOVERED"')
