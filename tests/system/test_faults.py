"""Whatever is killed, cut, repeated or reordered: what was acknowledged is there, once and whole.

Real processes on a Postgres of their own. Clients reach the replicas through proxies that cut connections at any byte;
meanwhile replicas, workers and Postgres itself are killed. PULLBACK_FAULTS is the number of uploads of the long run (72 unless set).
"""

import asyncio
import hashlib
import json
import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID, uuid5

import httpx
import psycopg
import pytest
from benchmarks.faults.database import kill_and_start, wrong_in

from pullback_service.errors import PostgresError
from pullback_service.postgres import EmbeddedPostgres
from pullback_service.reports.parsing import LONG_BODY_BYTES

pytestmark = pytest.mark.system

UPLOADS = int(os.environ.get("PULLBACK_FAULTS", "72"))
CLIENTS, AGENTS = 6, 4
OPERATIONS_BETWEEN_FAULTS = max(40, UPLOADS // 12)  # about fifty faults, however long the run
SEED = int(os.environ.get("PULLBACK_FAULTS_SEED", "1"))
LEASE_S = 4
ANSWER_S = 120
"""That any request is answered in, however often it has to be sent: Postgres starts again in seconds."""
AWAY = {"database-unavailable", "database-read-only", "database-disk-full"}
"""Kinds of problems after which the same is asked again."""
FINAL = {"done", "failed", "cancelled", "lost"}
# Counts differ between these commits, so bisections ask for comparisons as well, which agents of this test do not take.
ASKED = "SELECT id, state, attempts FROM job WHERE origin = 'asked'"
UNFOLLOWED = "SELECT count(*) FROM report WHERE followed_up_at IS NULL"
NAMESPACE = UUID("5b0d6f9e-7d63-4b8f-9d4e-0a7d6a3c1f11")


class CuttingProxy:
    """Passes bytes on to a replica and, after a number of them that nobody can foresee, closes both ends."""

    def __init__(self, port, chance):
        self.port = None
        self.cuts = 0
        self._upstream = port
        self._chance = chance
        self._open = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._open.wait(10)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def close(self):
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(10)

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self):
        self._closing = asyncio.Event()
        self._connections = set()
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._open.set()
        await self._closing.wait()
        server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _pass_on(self, reader, writer):
        self._connections.add(asyncio.current_task())
        outer = []
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
            outer.append(upstream_writer)
            # A connection lives for some requests, then ends inside a request or inside an answer.
            sent, answered = (
                (self._chance.randrange(40_000), 10**9)
                if self._chance.random() < 0.5
                else (
                    10**9,
                    self._chance.randrange(12_000),
                )
            )
            ways = [
                asyncio.ensure_future(self._pump(reader, upstream_writer, sent)),
                asyncio.ensure_future(self._pump(upstream_reader, writer, answered)),
            ]
            done, left = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            self.cuts += any(way.result() for way in done if not way.exception())
            for way in left:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in (writer, *outer):
                end.transport.abort()
            self._connections.discard(asyncio.current_task())

    @staticmethod
    async def _pump(reader, writer, budget):
        """Pass bytes on until the end, or until the budget is spent, which is a cut."""
        while piece := await reader.read(16_384):
            writer.write(piece[:budget])
            await writer.drain()
            budget -= len(piece)
            if budget <= 0:
                return True
        return False


def make_report(number, *, project="faults", commit=None, cases=1, processes=3):
    """A report of ours, usually a small one: two variants of each case."""
    values = [1 + number / 1000 + process / 100 for process in range(processes)]
    variants = [
        {
            "variant": name,
            "kind": "tier",
            "metrics": {
                "time": {"unit": "s", "clock": "cpu", "processes": values},
                "array_bytes": {"unit": "B", "value": 1024.0 + number, "method": "nep49"},
            },
        }
        for name in ("unfused", "fused")
    ]
    sha = commit or f"{number // 3 + 1:040x}"
    return {
        "format": "pullback-report",
        "version": 1,
        "id": str(uuid5(NAMESPACE, f"{project} {number}")),
        "started_at": "2026-02-01T12:00:00Z",
        "project": project,
        "commit": {"sha": sha, "parents": [f"{max(int(sha, 16) - 1, 0):040x}"], "branch": "main", "dirty": False},
        "machine": {"fingerprint": f"box {number % 4}", "name": f"box {number % 4}", "facts": {}},
        "harness": {"version": "1", "suite": "quick", "quality": "clean"},
        "cases": [
            {
                "case": {"workload": f"w{number % 7}", "params": {"n": 10 + place}, "dtype": "f4", "device": "cpu"},
                "gradient": {"ok": True},
                "variants": variants,
            }
            for place in range(cases)
        ],
    }


POINTS = 4  # of each case
LONG_CASES = 200  # enough that storing begins before all of the report is read


@dataclass
class Upload:
    """One report, what it is sent as, and every receipt that came back for it."""

    key: str
    body: bytes
    query: dict[str, str]
    points: int
    receipts: list[dict] = field(default_factory=list)
    created: int = 0


def make_upload(number):
    """Every third one is another tool's file, every twenty-fourth is long."""
    if number % 3:
        cases, processes = (LONG_CASES, 80) if number % 24 == 1 else (1, 3)
        body = json.dumps(make_report(number, cases=cases, processes=processes)).encode()
        assert cases == 1 or len(body) > LONG_BODY_BYTES
        return Upload(f"run-{number}", body, {}, POINTS * cases)
    result = {"command": f"c{number % 5}", "mean": 1.0, "user": 0.5, "system": 0.1, "times": [1.0 + number, 1.1]}
    query = {"project": "faults", "commit": f"{number:040x}", "branch": "main", "machine": "ci"}
    return Upload(f"run-{number}", json.dumps({"results": [result]}).encode(), query, 3)


BAD_REQUESTS = (
    ("POST", "/api/v1/reports", b"{", {}),
    ("POST", "/api/v1/reports", b"\x1f\x8b broken", {}),
    ("POST", "/api/v1/reports", b'{"format": "pullback-report", "version": 1}', {}),
    (
        "POST",
        "/api/v1/reports",
        json.dumps({"results": [{"command": "c", "mean": -1}]}).encode(),
        {"project": "faults"},
    ),
    ("POST", "/api/v1/jobs", b'{"project": 5}', {}),
    ("GET", "/api/v1/reports?cursor=nonsense", b"", {}),
    ("GET", "/api/v1/series?project=" + "x" * 300, b"", {}),
    ("POST", "/api/v1/jobs/1/attempts/1/heartbeat", b'{"lease_token": "no"}', {}),
)


class World:
    """The clients' side: addresses to try, what was answered, and when the next fault is due."""

    def __init__(self, urls):
        self.urls = urls
        self.statuses = Counter()
        self.surprises = []
        self.operations = 0
        self.calm = False  # everything is sent, so nothing is broken any more
        self.finished = False
        self._lock = threading.Lock()

    def ask(self, http, chance, method, path, **parts):
        """Send a request to any replica, again and again until it is answered."""
        began = time.monotonic()
        while True:
            assert time.monotonic() - began < ANSWER_S, f"{method} {path} was not answered in {ANSWER_S} s"
            try:
                answer = http.request(method, chance.choice(self.urls) + path, **parts)
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            with self._lock:
                self.statuses[answer.status_code] += 1
                self.operations += 1
            if answer.status_code == 503 and answer.json()["type"].rpartition(":")[2] in AWAY:
                time.sleep(0.1)
                continue
            if answer.status_code >= 500:
                self.surprises.append((method, path, answer.text))
            return answer


def open_http():
    return httpx.Client(timeout=20, trust_env=False)


def upload_all(world, uploads, seed):
    """Send uploads in any order, some of them several times, bad requests in between."""
    chance = random.Random(seed)
    sends = [upload for upload in uploads for _ in range(chance.choice((1, 1, 2, 3)))]
    chance.shuffle(sends)
    with open_http() as http:
        for upload in sends:
            headers = {"Idempotency-Key": upload.key}
            answer = world.ask(
                http, chance, "POST", "/api/v1/reports", content=upload.body, params=upload.query, headers=headers
            )
            if answer.status_code not in {200, 201}:
                world.surprises.append(("upload", upload.key, answer.text))
                continue
            upload.receipts.append(answer.json())
            upload.created += answer.status_code == 201
            if chance.random() < 0.15:
                other = json.dumps(make_report(10**6 + chance.randrange(10**6))).encode()
                refused = world.ask(http, chance, "POST", "/api/v1/reports", content=other, headers=headers)
                if refused.status_code != 409:
                    world.surprises.append(("another body under a known key", upload.key, refused.text))
            if chance.random() < 0.2:
                method, path, body, query = chance.choice(BAD_REQUESTS)
                refused = world.ask(http, chance, method, path, content=body, params=query or None)
                if not 400 <= refused.status_code < 500:
                    world.surprises.append(("bad input", path, refused.text))


@dataclass
class Work:
    """What one agent knows it has done: acknowledged reports and pieces of logs."""

    reports: dict[str, int] = field(default_factory=dict)
    logs: dict[tuple[int, int], bytes] = field(default_factory=dict)


def measure_all(world, number, seed):
    """An agent: claims until there is nothing left; sends its log, then a report or a failure, or falls silent."""
    chance = random.Random(seed)
    work = Work()
    with open_http() as http:
        enrolment = {"name": f"agent {number}", "machine": {"fingerprint": f"m{number}", "name": f"m{number}"}}
        agent = world.ask(http, chance, "POST", "/api/v1/agents/enroll", json=enrolment).json()["agent_id"]
        while not world.finished:
            claim = world.ask(http, chance, "POST", f"/api/v1/agents/{agent}/claim", json={"wait_s": 1})
            if claim.status_code == 200:
                _measure(world, http, chance, claim.json(), work, enrolment["machine"])
            elif claim.status_code != 204:
                world.surprises.append(("claim", agent, claim.text))
    return work


def _measure(world, http, chance, claim, work, machine):
    job, attempt, token = claim["job"], claim["attempt"], claim["lease_token"]
    place = f"/api/v1/jobs/{job['id']}/attempts/{attempt}"
    lease = {"Pullback-Lease": token}
    beat = world.ask(http, chance, "POST", f"{place}/heartbeat", json={"lease_token": token, "phase": "measure"})
    if beat.json()["answer"] == "lost":
        return
    log = f"log of {job['id']}.{attempt}\n".encode() * chance.randrange(1, 40)
    offset = 0
    while offset < len(log):
        piece = log[offset : offset + chance.randrange(1, 400)]
        stored = world.ask(http, chance, "PUT", f"{place}/log", params={"offset": offset}, content=piece, headers=lease)
        if stored.status_code not in {200, 416}:
            world.surprises.append(("log", place, stored.text))
            break
        offset = stored.json()["size" if stored.status_code == 200 else "expected_offset"]
    work.logs[job["id"], attempt] = log
    fate = chance.random()
    if beat.json()["answer"] == "cancel" or fate < 0.15:
        kind = "cancelled" if beat.json()["answer"] == "cancel" else chance.choice(("infra", "workload"))
        statement = {"lease_token": token, "kind": kind, "message": "as planned", "retryable": kind == "infra"}
        for _ in range(chance.choice((1, 2))):
            world.ask(http, chance, "POST", f"{place}/fail", json=statement)
        return
    if fate < 0.2:
        return  # falls silent; the lease runs out
    report = make_report(job["id"] * 10 + attempt, project="jobs", commit=job["commit"]["sha"])
    report["machine"] |= machine
    for _ in range(chance.choice((1, 1, 2))):
        answer = world.ask(
            http, chance, "POST", f"{place}/report", json=report, headers={**lease, "Idempotency-Key": report["id"]}
        )
        if answer.status_code in {200, 201}:
            work.reports[report["id"]] = job["id"]
        else:
            world.surprises.append(("result", place, answer.text))


def ask_for_jobs(world, count, seed):
    """Ask for jobs, several times each; every eighth is cancelled."""
    chance = random.Random(seed)
    ids = {}
    numbers = [number for number in range(count) for _ in range(chance.choice((1, 2)))]
    chance.shuffle(numbers)
    with open_http() as http:
        for number in numbers:
            wanted = {"project": "jobs", "commit": {"sha": f"{number + 1:040x}"}, "suite": "quick", "timeout_s": 300}
            answer = world.ask(http, chance, "POST", "/api/v1/jobs", json=wanted)
            ids.setdefault(number, set()).add(answer.json()["id"])
            if number % 8 == 7:
                world.ask(http, chance, "POST", f"/api/v1/jobs/{answer.json()['id']}/cancel")
    return ids


class Faults:
    """Kills what it was told to in a fixed order of chance, each time so many operations later."""

    def __init__(self, world, cluster, postgres, seed):
        self.counts = Counter()
        self._world, self._cluster, self._postgres = world, cluster, postgres
        self._chance = random.Random(seed)
        self._kinds = []

    def run(self):
        due = OPERATIONS_BETWEEN_FAULTS
        while not self._world.calm:
            if self._world.operations < due:
                time.sleep(0.02)
                continue
            self._one()
            due = self._world.operations + OPERATIONS_BETWEEN_FAULTS

    def _one(self):
        if not self._kinds:  # all of them before any comes again
            self._kinds = ["replica", "worker", "postgres", "backends", "replica", "worker"]
            self._chance.shuffle(self._kinds)
        kind = self._kinds.pop()
        self.counts[kind] += 1
        if kind == "postgres":
            kill_and_start(self._postgres)
        elif kind == "backends":
            with psycopg.connect(self._postgres.url(), autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                )
        else:
            group = self._cluster.replicas if kind == "replica" else self._cluster.workers
            victim = self._chance.choice(group)
            victim.kill()
            victim.restart()
            if kind == "replica":
                self._cluster.wait_until_ready(self._cluster.urls[group.index(victim)])


@pytest.fixture
def postgres(folder):
    """A Postgres that may be killed, with the durability it has in service."""
    server = EmbeddedPostgres(folder / "postgres", settings={"max_connections": "150"})
    server.start()
    yield server
    server.destroy()


@pytest.fixture
def cluster(start_cluster, postgres):
    return start_cluster(
        {
            "DATABASE_URL": postgres.url(),
            "PULLBACK_LEASE_S": str(LEASE_S),
            "PULLBACK_HEARTBEAT_S": "1",
            "PULLBACK_RETRY_PAUSE_S": "0.1",
            "PULLBACK_LOG_LEVEL": "warning",
        },
        replicas=2,
        workers=2,
    )


@pytest.fixture
def proxies(cluster):
    found = [
        CuttingProxy(int(url.rpartition(":")[2]), random.Random(SEED + number))
        for number, url in enumerate(cluster.urls)
    ]
    yield found
    for proxy in found:
        proxy.close()


@pytest.mark.parametrize("number_of_uploads", [6, pytest.param(UPLOADS, marks=pytest.mark.long(most_s=3600))])
def test_every_acknowledged_write_is_there_once_whatever_is_killed_or_cut(
    cluster, proxies, postgres, until, number_of_uploads
):
    number_of_jobs = max(number_of_uploads // 6, 6)
    rows = rows_of(postgres)
    world = World([proxy.url for proxy in proxies])
    faults = Faults(world, cluster, postgres, SEED)
    uploads = [make_upload(number) for number in range(number_of_uploads)]
    with ThreadPoolExecutor(CLIENTS + AGENTS + 2) as pool:
        breaking = pool.submit(faults.run)
        agents = [pool.submit(measure_all, world, number, f"agent {SEED} {number}") for number in range(AGENTS)]
        asking = pool.submit(ask_for_jobs, world, number_of_jobs, f"jobs {SEED}")
        # Every upload is in the hands of two clients at once.
        sending = [
            pool.submit(upload_all, world, uploads[number // 2 :: CLIENTS // 2], f"client {SEED} {number}")
            for number in range(CLIENTS)
        ]
        try:
            for each in sending:
                each.result()
            jobs = asking.result()
            world.calm = True
            breaking.result()
            until(
                lambda: all(state in FINAL for _, state, _ in rows(ASKED)), 240, "all jobs that were asked for to end"
            )
        finally:
            world.calm = world.finished = True
            if breaking.done():
                breaking.result()  # what could not be started again is the reason why nobody answers
        work = [agent.result() for agent in agents]

    assert Counter(world.surprises) == {}
    assert "unexpected_error" not in cluster.said()
    assert world.statuses.keys() <= {200, 201, 204, 400, 404, 409, 415, 416, 422, 503}, world.statuses
    left = None
    while left != 0:  # chores of killed workers are freed after a while, and those of a project take turns
        known = left
        ((left,),) = until(
            lambda known=known: (found := rows(UNFOLLOWED)) != [(known,)] and found,
            180,
            f"any of {known} chores to be done",
        )
    _uploads_are_there_once(rows, uploads)
    _jobs_are_done_once(rows, jobs, work)
    assert wrong_in(rows) == []
    checked = cluster.product.start(
        "db", "check", log=cluster.product.home / "check.log", environment={"DATABASE_URL": postgres.url()}
    )
    assert checked.wait(60) == 0, (cluster.product.home / "check.log").read_text()
    print(  # noqa: T201 - what a long run is made for
        f"{number_of_uploads} uploads, {number_of_jobs} jobs, {world.operations} answers ({dict(world.statuses)}), "
        f"{sum(proxy.cuts for proxy in proxies)} cuts, faults {dict(faults.counts)}"
    )


def rows_of(postgres):
    """Questions to the database itself, one connection each: Postgres may be killed between two of them."""

    def rows(query, *parameters):
        for _ in range(200):
            with suppress(psycopg.OperationalError, PostgresError), psycopg.connect(postgres.url()) as connection:
                return connection.execute(query, parameters).fetchall()
            time.sleep(0.1)
        raise AssertionError("Postgres did not come back")

    return rows


def _uploads_are_there_once(rows, uploads):
    stored = {
        key: (str(report_id), size, points)
        for report_id, key, size, points in rows(
            "SELECT r.id, idempotency_key, body_bytes, r.points FROM report r JOIN project p ON p.id = r.project_id "
            "WHERE p.name = 'faults'"
        )
    }
    assert stored.keys() == {upload.key for upload in uploads}
    for upload in uploads:
        receipts = {json.dumps({**receipt, "notes": None}, sort_keys=True) for receipt in upload.receipts}
        assert len(receipts) == 1, upload.key  # the same answer every time
        assert upload.created <= 1, upload.key
        assert stored[upload.key] == (upload.receipts[0]["id"], len(upload.body), upload.points)
    audited = Counter(subject for (subject,) in rows("SELECT subject FROM audit WHERE action = 'upload_report'"))
    assert audited == {f"report {report_id}": 1 for report_id, _, _ in stored.values()}
    ((reports, points),) = rows("SELECT reports, points FROM project WHERE name = 'faults'")
    assert (reports, points) == (len(uploads), sum(upload.points for upload in uploads))


def _jobs_are_done_once(rows, asked, work):
    # A job that failed or was cancelled stands no longer, so asking once more makes another; a standing one is found again.
    made = {job_id: (state, attempts) for job_id, state, attempts in rows(ASKED)}
    assert made.keys() == {job_id for ids in asked.values() for job_id in ids}
    accepted = Counter(
        job_id for (job_id,) in rows("SELECT job_id FROM report WHERE status = 'accepted' AND job_id IS NOT NULL")
    )
    for job_id, (state, attempts) in made.items():
        assert state in FINAL
        assert attempts <= 3
        assert accepted[job_id] <= 1
    stored = dict(rows("SELECT id::text, job_id FROM report WHERE job_id IS NOT NULL"))
    delivered = {report: job_id for each in work for report, job_id in each.reports.items()}
    assert stored == delivered
    for job_id in set(delivered.values()):
        assert made[job_id][0] in {"done", "cancelled", "failed"}
    for (job_id, number), log in ((place, log) for each in work for place, log in each.logs.items()):
        pieces = rows(
            "SELECT l.content FROM job_log l JOIN attempt a ON a.id = l.attempt_id "
            "WHERE a.job_id = %s AND a.number = %s ORDER BY l.start_byte",
            job_id,
            number,
        )
        assert hashlib.sha256(b"".join(piece for (piece,) in pieces)).digest() == hashlib.sha256(log).digest()
