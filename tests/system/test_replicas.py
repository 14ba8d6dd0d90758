"""Two API replicas and three workers on one database behave as one service, also while one of them stops."""

import json
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import psycopg
import pytest
from tests.system.clusters import Cluster
from tests.system.products import Product, until

pytestmark = pytest.mark.system

BOOTSTRAP = "the-secret-of-the-cluster"
GUIDE = Path(__file__).parents[2] / "docs" / "uploading.md"
SHA = "3" * 40
TIMES = {"results": [{"command": "c", "mean": 1.0, "user": 0.5, "system": 0.1, "times": [1.0, 1.1]}]}
SAID = {"project": "demo", "commit": SHA, "branch": "main", "machine": "ci"}


@pytest.fixture(scope="module")
def database(postgres_server):
    name = f"replicas_{uuid4().hex}"
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield postgres_server.url(name)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="module")
def cluster(database):
    folder = Path(tempfile.mkdtemp(prefix="pullback-replicas-"))
    (folder / "token").write_text(BOOTSTRAP)
    environment = {
        "DATABASE_URL": database,
        "PULLBACK_AUTH": "token",
        "PULLBACK_TOKEN_FILE": str(folder / "token"),
        "PULLBACK_HEARTBEAT_S": "1",
    }
    running = Cluster(Product(folder, None), environment, replicas=2, workers=3)
    yield running
    for process in running.processes:
        process.stop()
    shutil.rmtree(folder)


@pytest.fixture
def replicas(cluster):
    """A client of each replica, with every right."""
    headers = {"Authorization": f"Bearer {BOOTSTRAP}"}
    clients = [httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) for url in cluster.urls]
    yield clients
    for client in clients:
        client.close()


@pytest.fixture
def rows(database):
    def ask(query, *parameters):
        with psycopg.connect(database) as connection:
            return connection.execute(query, parameters).fetchall()

    return ask


def upload(client, number, key):
    body = json.dumps({"results": [{**TIMES["results"][0], "command": f"c{number}"}]})
    return client.post("/api/v1/reports", params=SAID, content=body, headers={"Idempotency-Key": key})


def make_token(client, name, *scopes):
    answer = client.post("/api/v1/tokens", json={"name": name, "scopes": list(scopes)})
    assert answer.status_code == 201, answer.text
    return answer.json()


def enroll(client, number):
    machine = {"fingerprint": f"f{number}", "name": f"m{number}"}
    return client.post("/api/v1/agents/enroll", json={"name": f"a{number}", "machine": machine}).json()["agent_id"]


def queue(client, number):
    wanted = {"project": "demo", "commit": {"sha": f"{number:040x}"}, "suite": "quick"}
    answer = client.post("/api/v1/jobs", json=wanted)
    assert answer.is_success, answer.text
    return answer.json()["id"]


def test_one_key_sent_to_all_replicas_at_once_is_one_report(replicas, rows):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda turn: upload(replicas[turn % 2], 1, "same"), range(16)))
    assert sorted(answer.status_code for answer in answers) == [200] * 15 + [201]
    assert len({answer.text for answer in answers}) == 1
    assert [upload(client, 2, "same").status_code for client in replicas] == [409, 409]
    assert rows("SELECT count(*) FROM report WHERE idempotency_key = 'same'") == [(1,)]


def test_workers_follow_up_every_upload_and_count_it_once(replicas, rows):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda turn: upload(replicas[turn % 2], turn, f"counted {turn}"), range(10, 34)))
    assert {answer.status_code for answer in answers} == {201}
    until(lambda: not rows("SELECT 1 FROM report WHERE followed_up_at IS NULL"), 120, "all chores to be done")
    ((reports, points),) = rows("SELECT count(*), sum(points) FROM report")
    assert rows("SELECT reports, points FROM project") == [(reports, points)]


def test_a_token_holds_and_ends_on_all_replicas(replicas, cluster):
    token = make_token(replicas[0], "short", "read")
    headers = {"Authorization": f"Bearer {token['token']}"}
    assert [client.get("/api/v1/projects", headers=headers).status_code for client in replicas] == [200, 200]
    assert replicas[1].post(f"/api/v1/tokens/{token['id']}/revoke").is_success
    assert [client.get("/api/v1/projects", headers=headers).status_code for client in replicas] == [401, 401]


def test_a_login_at_one_replica_is_a_login_at_the_other(replicas, cluster):
    token = make_token(replicas[0], "person", "read")
    with httpx.Client(timeout=60, trust_env=False, follow_redirects=False) as browser:
        one, other = cluster.urls
        answer = browser.post(f"{one}/login", data={"token": token["token"]})
        assert answer.status_code == 303, answer.text
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=lax"} <= set(re.split(r"; ", cookie))
        held = {"Cookie": cookie.partition(";")[0]}
        assert browser.get(f"{other}/api/v1/machines").status_code == 200
        # A write with the cookie alone is refused; with the CSRF token of our own page it is not.
        assert browser.post(f"{other}/logout").status_code == 403
        page = browser.get(f"{other}/", follow_redirects=True).text
        assert 'name="csrf"' in page, page
        proof = re.search(r'name="csrf" value="(\w+)"', page)[1]
        assert browser.post(f"{other}/logout", data={"csrf": proof}).status_code == 303
        assert browser.get(f"{one}/api/v1/machines", headers=held).status_code == 401


def test_a_job_queued_at_one_replica_wakes_an_agent_that_waits_at_the_other(replicas):
    agent = enroll(replicas[0], 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(replicas[0].post, f"/api/v1/agents/{agent}/claim", json={"wait_s": 30})
        job = queue(replicas[1], 1)
        claim = waiting.result()
    assert claim.status_code == 200
    assert claim.json()["job"]["id"] == job
    place = f"/api/v1/jobs/{job}/attempts/1/fail"
    statement = {"lease_token": claim.json()["lease_token"], "kind": "workload"}
    assert [client.post(place, json=statement).json()["answer"] for client in replicas] == ["failed", "lost"]


def test_every_job_goes_to_one_agent_whichever_replica_it_asks(replicas, rows):
    jobs = {queue(replicas[number % 2], 100 + number) for number in range(12)}
    agents = [enroll(replicas[number % 2], 10 + number) for number in range(12)]
    with ThreadPoolExecutor(12) as pool:
        claims = list(
            pool.map(
                lambda agent: replicas[agent % 2].post(f"/api/v1/agents/{agent}/claim", json={"wait_s": 20}), agents
            )
        )
    assert {claim.json()["job"]["id"] for claim in claims} == jobs
    assert rows("SELECT count(*) FROM attempt WHERE ended_at IS NULL") == [(12,)]
    for claim in claims:
        statement = {"lease_token": claim.json()["lease_token"], "kind": "workload"}
        replicas[0].post(f"/api/v1/jobs/{claim.json()['job']['id']}/attempts/1/fail", json=statement)


@pytest.fixture
def one_after_the_other(database, replicas):
    """Two decisions about a job, one at each replica, both under way before either is made, and made in this order."""

    def decide(job, *decisions):
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        with psycopg.connect(database) as held, psycopg.connect(database, autocommit=True) as looking:
            held.execute("SELECT FROM job WHERE id = %s FOR UPDATE", [job])
            with ThreadPoolExecutor(2) as pool:
                answers = []
                for number, (client, decision) in enumerate(zip(replicas, decisions, strict=True), start=1):
                    answers.append(pool.submit(client.post, f"/api/v1/jobs/{job}/{decision}"))
                    until(
                        lambda n=number: looking.execute(waiting).fetchone() == (n,),
                        30,
                        "the decision to wait its turn",
                    )
                held.rollback()
                return [answer.result() for answer in answers]

    return decide


def test_of_two_decisions_at_once_the_one_that_comes_too_late_is_told_so(replicas, rows, one_after_the_other):
    numbers = iter(range(500, 600))
    agent = enroll(replicas[0], 60)

    def waits():
        return queue(replicas[0], next(numbers))

    def of_a_fork():
        commit = {"sha": f"{next(numbers):040x}", "fork": "someone/gradients"}
        wanted = {"project": "demo", "commit": commit, "suite": "quick"}
        return replicas[0].post("/api/v1/jobs", json=wanted).json()["id"]

    def approved():
        job = of_a_fork()
        assert replicas[0].post(f"/api/v1/jobs/{job}/approve").is_success
        return job

    def running():
        job = waits()
        assert replicas[0].patch(f"/api/v1/jobs/{job}", json={"priority": 1000}).is_success
        claim = replicas[0].post(f"/api/v1/agents/{agent}/claim", json={}).json()
        assert claim["job"]["id"] == job
        leases[job] = {"lease_token": claim["lease_token"], "kind": "workload"}
        return job

    def failed():
        job = running()
        assert replicas[0].post(f"/api/v1/jobs/{job}/attempts/1/fail", json=leases.pop(job)).is_success
        return job

    leases = {}
    for made, decisions, statuses, said, state in (
        (of_a_fork, ("cancel", "approve"), (200, 409), "is cancelled and not waiting for approval", "cancelled"),
        (approved, ("cancel", "approve"), (200, 409), "is cancelled and not waiting for approval", "cancelled"),
        (
            of_a_fork,
            ("approve", "cancel"),
            (200, 200),
            None,
            "cancelled",
        ),  # approved, and then cancelled as any job may be
        (
            failed,
            ("cancel", "retry"),
            (409, 200),
            "is failed: only unfinished jobs can be cancelled",
            "queued",
        ),
        (failed, ("retry", "cancel"), (200, 200), None, "cancelled"),
        (waits, ("cancel", "cancel"), (200, 200), None, "cancelled"),  # both wanted that
        (
            running,
            ("cancel", "retry"),
            (200, 409),
            "is leased and being cancelled: retry it when it has ended",
            "leased",
        ),
    ):
        job = made()
        answers = one_after_the_other(job, *decisions)
        told = (made.__name__, decisions, [answer.text for answer in answers])
        assert tuple(answer.status_code for answer in answers) == statuses, told
        assert rows("SELECT state FROM job WHERE id = %s", job) == [(state,)], told
        for answer in answers:
            if answer.status_code == 409:
                assert answer.headers["content-type"] == "application/problem+json"
                assert f"Job {job} {said}" in answer.json()["detail"]
        if job in leases:
            assert replicas[0].post(f"/api/v1/jobs/{job}/attempts/1/fail", json=leases.pop(job)).is_success
        replicas[0].post(f"/api/v1/jobs/{job}/cancel")  # nothing of this is left for other agents


def test_five_lines_of_ci_upload_and_errors_say_what_to_do(replicas, cluster, tmp_path):
    lines = next(block for block in re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "RUN_ID" in block)
    token = make_token(replicas[0], "ci", "upload")["token"]
    (tmp_path / "bench.json").write_text(json.dumps(TIMES))
    usual = {"URL": cluster.urls[0], "TOKEN": token, "SHA": SHA, "RUN_ID": "run-1742"}

    def paste(text=lines, **changes):
        done = subprocess.run(  # noqa: S602 - a person's own lines, which a shell has to read
            text.replace("curl ", "curl --silent --write-out ' %{http_code}' "),
            shell=True,
            env={**usual, **changes, "PATH": "/usr/bin:/bin"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        content, _, status = done.stdout.rpartition(" ")
        return int(status), json.loads(content)

    first, again = paste(), paste(URL=cluster.urls[1])
    assert (first[0], again[0], first[1] == again[1]) == (201, 200, True)
    assert replicas[1].get(first[1]["url"]).is_success
    (tmp_path / "bench.json").write_text(json.dumps({"results": [{**TIMES["results"][0], "times": [2.0]}]}))
    status, problem = paste()
    assert (status, "use a new Idempotency-Key, or none" in problem["detail"]) == (409, True)

    reader = make_token(replicas[0], "reader", "read")["token"]
    for said, changes, text in (
        ((401, "Unknown token: check the address"), {"TOKEN": "plb_" + "x" * 32}, lines),
        ((403, "use a token with that scope; create one with `pullback token create`"), {"TOKEN": reader}, lines),
        (
            (404, "or create it with `pullback project create nowhere`"),
            {},
            re.sub(r"project=\w+", "project=nowhere", lines),
        ),
        ((422, "as printed by `git rev-parse HEAD`"), {"SHA": ""}, lines),
        ((400, "add commit=SHA"), {}, lines.replace("&commit=$SHA", "")),
    ):
        status, problem = paste(text, **changes)
        assert (status, said[1] in problem["detail"]) == (said[0], True), problem
    (tmp_path / "bench.json").write_text('{"a": 1}')
    status, problem = paste(RUN_ID="run-1743")
    assert (status, "name it with format=" in problem["detail"]) == (400, True), problem


def test_a_replica_that_stops_finishes_uploads_and_answers_those_who_wait(cluster, replicas, rows):
    agent = enroll(replicas[0], 50)
    place = urlsplit(cluster.urls[0])
    body = json.dumps({"results": [{**TIMES["results"][0], "command": "last"}]}).encode()
    head = (
        f"POST /api/v1/reports?project=demo&commit={SHA}&machine=ci HTTP/1.1\r\nHost: {place.netloc}\r\n"
        f"Authorization: Bearer {BOOTSTRAP}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    job = queue(replicas[1], 400)
    claim = replicas[1].post(f"/api/v1/agents/{enroll(replicas[1], 51)}/claim", json={}).json()
    attempt = f"/api/v1/jobs/{claim['job']['id']}/attempts/1"
    lease = {"Pullback-Lease": claim["lease_token"]}

    def follow(client, offset):
        return client.get(f"/api/v1/jobs/{job}/log", params={"offset": offset, "wait_s": 30})

    with ThreadPoolExecutor(2) as pool, socket.create_connection((place.hostname, place.port), timeout=60) as half:
        half.sendall(head.encode() + body[:20])
        following = pool.submit(follow, replicas[0], 0)
        assert replicas[1].put(f"{attempt}/log?offset=0", content=b"one ", headers=lease).is_success
        assert following.result().content == b"one "
        following = pool.submit(follow, replicas[0], 4)
        asked = {
            "wait_s": 30,
            "spool": {"waiting": 1, "bytes": 1},
        }  # what an agent tells of itself is written as it asks
        waiting = pool.submit(replicas[0].post, f"/api/v1/agents/{agent}/claim", json=asked)
        until(lambda: rows("SELECT FROM agent WHERE id = %s AND spool_waiting = 1", agent), what="the claim")
        until(lambda: "pullback_log_streams 1.0" in replicas[0].get("/metrics").text, what="the reader of the log")
        cluster.replicas[0].process.send_signal(signal.SIGTERM)
        assert waiting.result().status_code in {200, 204}
        answer = following.result()
        assert (answer.content, answer.headers["pullback-log-complete"]) == (b"", "false")
        half.sendall(body[20:])
        answer = b"".join(iter(lambda: half.recv(4096), b""))
    assert b" 201 " in answer.splitlines()[0], answer
    assert cluster.replicas[0].process.wait(60) in {0, -signal.SIGTERM}  # the signal itself, once all is done
    # Whoever followed the log goes on at the other replica, where they were.
    assert replicas[1].put(f"{attempt}/log?offset=4", content=b"two", headers=lease).is_success
    statement = {"lease_token": claim["lease_token"], "kind": "workload"}
    assert replicas[1].post(f"{attempt}/fail", json=statement).is_success
    answer = follow(replicas[1], 4)
    assert (answer.content, answer.headers["pullback-log-complete"]) == (b"two", "true")
    cluster.replicas[0].restart()
    cluster.wait_until_ready(cluster.urls[0])
