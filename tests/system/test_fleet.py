"""The parts as processes of their own on an external database, as docker-compose.yml runs them, and what breaks there."""

import os
import signal

import psutil
import psycopg
import pytest
from tests.system.clusters import free_port, is_ready
from tests.system.conftest import clone_of_the_engine, small_library
from tests.system.products import SUITE, Product, until

from pullback_runners.suites import SUITES

pytestmark = pytest.mark.system

TOKEN = "a-secret-of-the-fleet"  # noqa: S105 - of this test alone


class Service:
    """The API on a database. It runs from the first time that it is asked for until a test ends it or the module does."""

    def __init__(self, folder, database_url):
        (folder / "token").write_text(TOKEN + "\n")
        (folder / "database_url").write_text(database_url + "\n")
        self.environment = {
            "DATABASE_URL_FILE": str(folder / "database_url"),
            "PULLBACK_AUTH": "token",
            "PULLBACK_TOKEN_FILE": str(folder / "token"),
            "PULLBACK_LEASE_S": "6",
            "PULLBACK_HEARTBEAT_S": "1",
            "PULLBACK_RETRY_PAUSE_S": "0",
        }
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._product = Product(folder, None)
        self._process = None

    def serve(self):
        """Start it unless it runs, and return its process once it answers."""
        if self._process is None or self._process.poll() is not None:
            self._process = self._product.start(
                *("serve", "--port", str(self.port)), log=self._product.home / "serve.log", environment=self.environment
            )
        until(lambda: is_ready(self.url), what="the service to be ready")
        return self._process

    def stop(self):
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(30)


class Fleet:
    """The processes of a compose file."""

    def __init__(self, product, service, connect):
        self.product, self.service = product, service
        self.secrets, self.port, self.serve = service.environment, service.port, service.serve
        self.logs = product.home
        self.until = until
        self.api = connect(service.url, TOKEN)
        self.running = []

    def start(self, *arguments, environment):
        process = self.product.start(*arguments, log=self.logs / f"{arguments[0]}.log", environment=environment)
        self.running.append(process)
        return process

    def stop(self):
        for process in reversed(self.running):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(30)

    def work(self):
        return self.start("worker", environment=self.secrets)

    def agent(self, *more, **environment):
        return self.start(
            *("agent", "--server", self.service.url, "--repository", str(self.product.repository)),
            *("--data", str(self.product.data), "--least-free-gib", "0.1", *more),
            environment={"PULLBACK_TOKEN_FILE": self.secrets["PULLBACK_TOKEN_FILE"], **environment},
        )

    def command(self, *arguments):
        """Run a command on the service's database and return what it printed."""
        log = self.logs / "command.log"
        log.unlink(missing_ok=True)
        assert self.product.start(*arguments, log=log, environment=self.secrets).wait(60) == 0, log.read_text()
        return log.read_text()

    def ask_for_job(self, sha, suite="trial"):
        commit = {"sha": sha, "parents": [], "branch": "main", "author": "A", "title": "t"}
        body = {"project": "pullback", "commit": commit, "suite": suite, "timeout_s": 300}
        answer = self.api.http.post("/api/v1/jobs", json=body)
        assert answer.is_success, answer.text
        return answer.json()["id"]

    def cancel_jobs(self):
        """Leave no job to the next test's agents."""
        for job in self.api.get("/api/v1/jobs", limit=100)["items"]:
            if job["state"] in {"queued", "leased", "running"}:
                assert self.api.http.post(f"/api/v1/jobs/{job['id']}/cancel").is_success

    def measuring(self):
        return self.product.measuring()


@pytest.fixture
def repository(request, folder):
    """A small library with one case, or what a test of the engine's own commits names: a clone of the engine."""
    if getattr(request, "param", None) == "engine":
        return clone_of_the_engine(folder)
    return small_library(folder)


of_the_engine = pytest.mark.parametrize("repository", ["engine"], indirect=True)


@pytest.fixture(scope="module")
def shared_service(module_database_url, tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("service"), module_database_url)
    yield service
    service.stop()


@pytest.fixture
def fleet(product, shared_service, connect):
    """A fleet whose service other tests of this module use as well: each has its own repository, and leaves no job."""
    fleet = Fleet(product, shared_service, connect)
    yield fleet
    fleet.stop()
    fleet.serve()
    fleet.cancel_jobs()


@pytest.fixture
def own_fleet(product, tmp_path, database_url, connect):
    """A fleet on a database of its own."""
    fleet = Fleet(product, Service(tmp_path, database_url), connect)
    yield fleet
    fleet.stop()
    fleet.service.stop()


@pytest.fixture
def composed_fleet(product, tmp_path, bare_database_url, connect):
    """A fleet on a database that was empty, by every command of the compose file."""
    fleet = Fleet(product, Service(tmp_path, bare_database_url), connect)
    fleet.command("migrate")
    fleet.serve()
    fleet.work()
    yield fleet
    fleet.stop()
    fleet.service.stop()


@pytest.fixture
def rows(database_url):
    def ask(query):
        with psycopg.connect(database_url, autocommit=True) as connection:
            return connection.execute(query).fetchall()

    return ask


@pytest.fixture
def head(product, git):
    return git(product.repository, "rev-parse", "HEAD")


def _accepted(fleet, head):
    return fleet.api.get("/api/v1/reports", commit=head)["items"]


@pytest.mark.long
@of_the_engine
def test_the_commands_of_the_compose_file_measure_a_commit_on_equal_computers_for_a_machine_each(composed_fleet, head):
    fleet = composed_fleet
    for suite, environment in ((SUITE, {}), ("trial:poly9_powers*", {"PULLBACK_HOST": "its-equal"})):
        job_id = fleet.ask_for_job(head, suite)
        assert fleet.agent("--once", **environment).wait(120) == 0
        assert fleet.api.job(job_id)["state"] == "done"
    machines = fleet.api.get("/api/v1/machines")["items"]
    assert len({machine["fingerprint"] for machine in machines}) == 1
    drawn, equal = machines
    assert len(drawn["host"]) == 16
    assert (equal["host"], equal["name"]) == ("its-equal", f"{drawn['name']} (2)")
    reports = _accepted(fleet, head)
    assert sorted(report["machine"] for report in reports) == sorted([drawn["name"], equal["name"]])
    for report in reports:
        document = fleet.api.get(f"/api/v1/reports/{report['id']}")["document"]
        for variant in document["cases"][0]["variants"]:
            assert variant["digests"]["workload"]
            assert bool(variant["digests"]["subject"]) == (variant["kind"] == "tier")
    for wrong in ("Bearer wrong", ""):
        assert fleet.api.http.get("/api/v1/jobs", headers={"Authorization": wrong}).status_code == 401


@pytest.mark.long
def test_an_agent_that_is_killed_says_so_when_it_is_back_and_its_job_is_done_once(fleet, head):
    fleet.serve()
    fleet.work()
    job_id = fleet.ask_for_job(head)
    agent = fleet.agent()
    (measuring,) = fleet.until(fleet.measuring, what="measuring to begin")
    agent.send_signal(signal.SIGKILL)
    agent.wait()
    _, gone = psutil.wait_procs([measuring], timeout=10)
    assert not [process for process in gone if process.status() != psutil.STATUS_ZOMBIE]

    fleet.agent()
    job = fleet.api.wait_for_job(job_id, "done", "failed", "lost")
    assert (job["state"], job["attempts"]) == ("done", 2)
    assert job["history"][0]["failure_kind"] == "infra"
    assert len(_accepted(fleet, head)) == 1


@pytest.mark.long
def test_an_agent_that_never_comes_back_loses_its_lease_to_the_queue(fleet, head):
    fleet.serve()
    fleet.work()
    job_id = fleet.ask_for_job(head)
    agent = fleet.agent()
    fleet.until(fleet.measuring, what="measuring to begin")
    agent.send_signal(signal.SIGKILL)
    agent.wait()
    job = fleet.api.wait_for_job(job_id, "queued")
    assert job["history"][0]["state"] == "lost"


def test_a_report_made_while_the_service_is_away_is_delivered_later(fleet, head):
    service = fleet.serve()
    job_id = fleet.ask_for_job(head)
    fleet.agent()
    fleet.until(fleet.measuring, what="measuring to begin")
    service.send_signal(signal.SIGKILL)
    service.wait()
    spool = fleet.product.data / "spool"
    fleet.until(lambda: list(spool.glob("*.json")), what="the report to be in the spool")
    fleet.serve()
    job = fleet.api.wait_for_job(job_id, "done", "failed", "lost")
    assert job["state"] == "done"
    fleet.until(lambda: list((spool / "sent").glob("*.json")), what="the report to be filed as sent")
    assert not list(spool.glob("*.json"))
    assert len(_accepted(fleet, head)) == 1


def test_a_cancelled_job_ends_its_measuring_and_nothing_is_kept(fleet, head):
    fleet.serve()
    job_id = fleet.ask_for_job(head)
    fleet.agent()
    fleet.until(fleet.measuring, what="measuring to begin")
    assert fleet.api.http.post(f"/api/v1/jobs/{job_id}/cancel").is_success
    assert fleet.api.wait_for_job(job_id, "cancelled", "done")["state"] == "cancelled"
    assert not fleet.measuring()
    assert _accepted(fleet, head) == []


@pytest.mark.long
def test_sigterm_finishes_the_job_and_then_ends(fleet, head):
    fleet.serve()
    job_id = fleet.ask_for_job(head)
    agent = fleet.agent()
    fleet.until(fleet.measuring, what="measuring to begin")
    os.kill(agent.pid, signal.SIGTERM)
    assert agent.wait(90) == 0
    assert fleet.api.job(job_id)["state"] == "done"


def test_sigint_gives_the_job_back_at_once(fleet, head):
    fleet.serve()
    job_id = fleet.ask_for_job(head)
    agent = fleet.agent()
    fleet.until(fleet.measuring, what="measuring to begin")
    os.kill(agent.pid, signal.SIGINT)
    assert agent.wait(30) == 0
    assert not fleet.measuring()
    job = fleet.api.job(job_id)
    assert (job["state"], job["history"][0]["failure_kind"]) == ("queued", "infra")


@pytest.mark.long
def test_two_agents_in_one_folder_are_refused(fleet):
    fleet.serve()
    fleet.agent()
    fleet.until(lambda: (fleet.product.data / "agent.lock").exists(), what="the first agent")
    second = fleet.product.run("agent", "--server", "http://127.0.0.1:1", "--data", str(fleet.product.data))
    assert (second.returncode, second.stderr.count("\n")) == (2, 1)
    assert "another agent" in second.stderr


@pytest.mark.long
def test_a_job_that_outlives_no_agent_is_lost_until_somebody_retries_it(fleet, head):
    fleet.serve()
    workers = [fleet.work() for _ in range(2)]
    job_id = fleet.ask_for_job(head)
    for number in (1, 2):
        agent = fleet.agent()
        fleet.until(fleet.measuring, what=f"measuring to begin for the {number}. time")
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        fleet.until(lambda: not fleet.measuring(), what="the measuring to end with its agent")
    workers[0].send_signal(signal.SIGKILL)
    workers[0].wait()
    fleet.agent()  # says what became of the second attempt, and gets nothing
    lost = fleet.api.wait_for_job(job_id, "lost", "done", "failed")
    assert (lost["state"], lost["attempts"]) == ("lost", 2)
    assert {attempt["failure_kind"] for attempt in lost["history"]} == {"infra"}
    assert _accepted(fleet, head) == []

    address = ("--server", f"http://127.0.0.1:{fleet.port}", "--token-file", fleet.secrets["PULLBACK_TOKEN_FILE"])
    retried = fleet.product.run("job", "retry", str(job_id), "--json", *address)
    assert retried.returncode == 0, retried.stderr
    done = fleet.api.wait_for_job(job_id, "done", "lost", "failed")
    assert (done["state"], done["attempts"], done["history"][-1]["state"]) == ("done", 3, "done")
    assert len(_accepted(fleet, head)) == 1


@pytest.mark.long
@of_the_engine
def test_a_machine_compares_a_commit_with_itself_and_its_noise_is_known(fleet, head):
    fleet.serve()
    body = {
        "project": "pullback",
        "commit": {"sha": head},
        "suite": SUITE,
        "kind": "compare",
        "reference": {"sha": head},
    }
    job_id = fleet.api.http.post("/api/v1/jobs", json=body).json()["id"]
    assert fleet.agent("--once").wait(300) == 0
    assert fleet.api.job(job_id)["state"] == "done"
    (report,) = _accepted(fleet, head)
    assert (report["points"], report["cases"]) == (0, 0)
    machines = fleet.api.get("/api/v1/machines")["items"]  # other tests of the fleet may have made more
    noises = [fleet.api.get(f"/api/v1/machines/{machine['id']}/noise") for machine in machines]
    (noise,) = [each for each in noises if each["comparisons"]]
    assert [workload["workload"] for workload in noise["workloads"]] == ["poly9_broadcast"]
    assert noise["comparisons"] >= 3  # tiers
    assert noise["groups"] == SUITES["trial"].groups * noise["comparisons"]


@pytest.mark.long
def test_an_agent_enrols_once_with_a_code_and_ends_with_its_token(own_fleet, folder, rows):
    own_fleet.serve()
    nowhere = "d" * 40  # a commit no clone has: every attempt ends before anything is measured
    code = folder / "code"
    address = ("--server", f"http://127.0.0.1:{own_fleet.port}", "--repository", str(own_fleet.product.repository))

    def agent(data, *more):
        return own_fleet.product.run(
            *("agent", *address, "--data", str(folder / data), "--token-file", str(code)),
            *("--least-free-gib", "0.1", "--name", "box", "--once", *more),
        )

    code.write_text(own_fleet.command("token", "enroll"))
    first = own_fleet.ask_for_job(nowhere)
    done = agent("one")
    assert done.returncode == 0, done.stderr
    lacking = own_fleet.api.job(first)
    assert (lacking["state"], lacking["failure_kind"]) == ("queued", "infra")
    own = folder / "one" / "token"
    assert (own.stat().st_mode & 0o777, own.read_text()[:4]) == (0o600, "plb_")
    (token,) = own_fleet.api.get("/api/v1/tokens")["items"]
    assert (token["name"], token["scopes"], token["revoked_at"]) == ("agent 1 (box)", ["agent"], None)
    limits = {"Authorization": f"Bearer {own.read_text().strip()}"}
    assert own_fleet.api.http.get("/api/v1/jobs", headers=limits).status_code == 403

    # The code is used up for anybody else; its own agent goes on with its token.
    other = agent("two")
    assert (other.returncode, other.stderr.splitlines()[-1].count("was used at")) == (2, 1), other.stderr
    assert [agent("one").returncode for _ in range(2)] == [0, 0]
    tried = own_fleet.api.job(first)
    assert (tried["state"], len(tried["history"])) == ("lost", 3)

    code.write_text(own_fleet.command("token", "enroll", "--expires-in-minutes", "5"))
    rows("UPDATE enrolment_code SET expires_at = now() WHERE used_at IS NULL RETURNING 1")
    late = agent("two")
    assert (late.returncode, late.stderr.splitlines()[-1].count("expired at")) == (2, 1), late.stderr

    # Revoked while it waits for a job: it is told so, and ends.
    waiting = own_fleet.product.start(
        *("agent", *address, "--data", str(folder / "one"), "--name", "box", "--least-free-gib", "0.1"),
        log=own_fleet.logs / "revoked.log",
    )
    own_fleet.running.append(waiting)
    own_fleet.until(lambda: "enrolled" in (own_fleet.logs / "revoked.log").read_text(), what="the agent to wait")
    assert own_fleet.api.http.post(f"/api/v1/tokens/{token['id']}/revoke").is_success
    own_fleet.api.http.post(f"/api/v1/jobs/{first}/retry")
    assert waiting.wait(60) == 2
    assert "revoked" in (own_fleet.logs / "revoked.log").read_text().splitlines()[-1]
    assert own_fleet.api.job(first)["state"] == "queued"
