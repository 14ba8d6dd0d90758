"""From thirty commits of a library to one message about the one that made it slower, whatever is killed on the way.

Service, worker, Postgres and git are real; the receivers of messages are doubles that listen. In the usual run an agent answers by
what is true of the commits, within seconds. PULLBACK_STORY=real has an agent that builds and measures them: `make story`.
"""

import json
import os
from collections import Counter
from contextlib import suppress
from datetime import datetime

import httpx
import psutil
import psycopg
import pytest
from tests.cli.github import GitHubDouble
from tests.service.notifications.doubles import Hooks, Mailbox
from tests.system.story import BROKEN, COMMITS, MENDED, UNFUSED, Demo, KnowingAgent

from pullback_service.postgres import EmbeddedPostgres

pytestmark = pytest.mark.system

IS_REAL = os.environ.get("PULLBACK_STORY") == "real"
PATIENCE_S = 900 if IS_REAL else 90
BEGINNINGS = {"confirmed", "likely", "wrong_gradient"}
STALLED = "UPDATE procrastinate.procrastinate_workers SET last_heartbeat = last_heartbeat - interval '1 minute'"


@pytest.fixture
def demo(folder):
    return Demo(folder)


@pytest.fixture
def receivers():
    """A receiver of webhooks and a mail server."""
    hooks, mailbox = Hooks(), Mailbox()
    yield hooks, mailbox
    hooks.close()
    mailbox.close()


@pytest.fixture
def github():
    """A double of GitHub: the part of its API that a gate uses."""
    double = GitHubDouble()
    yield double
    double.close()


@pytest.fixture
def postgres(folder):
    """A Postgres that may be killed, with the durability it has in service."""
    server = EmbeddedPostgres(folder / "postgres", settings={"max_connections": "50"})
    server.start()
    yield server
    server.destroy()


@pytest.fixture
def cluster(start_cluster, postgres, receivers):
    """One service and one worker."""
    return start_cluster(
        {
            "DATABASE_URL": postgres.url(),
            "PULLBACK_ALLOW_NETWORKS": "127.0.0.0/8",
            "PULLBACK_SMTP_URL": receivers[1].url,
            "PULLBACK_PUBLIC_URL": "https://pullback.example",
            "PULLBACK_LEASE_S": "30",
            "PULLBACK_IDLE_NOISE_HOURS": "0",
            "PULLBACK_LOG_LEVEL": "warning",
        },
        replicas=1,
        workers=1,
    )


class Story:
    """The product as the people of a project meet it."""

    def __init__(self, api, demo, database):
        self.api, self.demo, self._database = api, demo, database

    def post(self, path, body):
        """Send JSON, and return the answer."""
        answer = self.api.http.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def begin(self, project, hooks):
        """Make the project with its history and channels."""
        self.post("/api/v1/commits", self.demo.log(project))
        events = ["confirmed", "culprit", "resolved", "withdrawn", "likely", "wrong_gradient", "missing", "grown"]
        for kind, target in (
            ("webhook", {"url": hooks.url(f"/{project}/webhook")}),
            ("slack", {"url": hooks.url(f"/{project}/slack")}),
            ("email", {"to": [f"{project}@example.org"]}),
        ):
            self.post("/api/v1/channels", {"project": project, "name": kind, "kind": kind, "events": events, **target})

    def measure(self, numbers):
        """Queue jobs for commits."""
        for number in numbers:
            wanted = {"project": "waves", "commit": self.demo.said(number), "suite": "quick", "timeout_s": 600}
            self.post("/api/v1/jobs", wanted)

    def jobs(self):
        """All jobs."""
        return self.api.get("/api/v1/jobs", project="waves", limit=100)["items"]

    def incidents(self, project="waves"):
        """All incidents in full, oldest first."""
        known = {each["name"] for each in self.api.get("/api/v1/projects")["items"]}
        found = self.api.get("/api/v1/incidents", project=project, limit=100)["items"] if project in known else []
        return [self.api.get(each["url"]) for each in reversed(found) if each["state"] != "merged"]

    def is_settled(self):
        """True if no job waits or runs, no commit is searched for, and nothing waits for a look; not while anything is away."""
        with suppress(httpx.HTTPError, psycopg.OperationalError, AssertionError):
            if not self.is_looked_at():  # first: a look queues jobs
                return False
            waiting = [job for job in self.jobs() if job["state"] in {"queued", "leased", "running"}]
            searched = [each["bisection"] for each in self.incidents() if each["bisection"] is not None]
            return not waiting and all(each["state"] != "running" for each in searched)
        return False

    def is_looked_at(self):
        """True if changes were looked for in all reports."""
        with psycopg.connect(self._database) as database:
            return database.execute("SELECT NOT EXISTS (SELECT FROM report WHERE detected_at IS NULL)").fetchone()[0]


def arrived(hooks, path):
    """The messages that a receiver has, by their ids: whoever is killed may send one twice."""
    requests = [request for request in hooks.received if request.path == path]
    return {request.headers["pullback-delivery"]: request for request in requests}


class Killer:
    """Kills a process before or after the agent reports the job of a number, and starts it again."""

    def __init__(self, cluster, postgres):
        self.killed = Counter()
        self._cluster, self._postgres = cluster, postgres
        self._due = {(3, "after"): self._worker, (4, "before"): self._service, (6, "before"): self._database}

    def __call__(self, number, moment):
        kill = self._due.pop((number, moment), None)
        if kill is not None:
            kill()

    def _worker(self):
        self.killed["worker"] += 1
        (worker,) = self._cluster.workers
        worker.kill()
        with psycopg.connect(self._postgres.url(), autocommit=True) as database:
            database.execute(STALLED)  # as after the time in which a worker that lives says so
        worker.restart()

    def _service(self):
        self.killed["service"] += 1
        (service,) = self._cluster.replicas
        service.kill()
        service.restart()

    def _database(self):
        self.killed["postgres"] += 1
        server = psutil.Process(self._postgres.pid)
        server.kill()
        server.wait(60)
        self._postgres.start()


@pytest.fixture
def start_agent(cluster, demo, folder, postgres):
    """Start the agent of a run; it is gone afterwards."""
    started = []

    def start():
        killer = Killer(cluster, postgres)
        if IS_REAL:
            product = cluster.product
            process = product.start(
                *("agent", "--server", cluster.urls[0], "--repository", str(demo.folder)),
                *("--data", str(folder / "agent"), "--least-free-gib", "0.1"),
                log=product.home / "agent.log",
            )
            started.append(lambda: (process.terminate(), process.wait(60)))
        else:
            agent = KnowingAgent(cluster.urls[0], demo, hook=killer)
            started.append(agent.stop)
        return killer

    yield start
    for stop in started:
        stop()


@pytest.fixture
def story(cluster, connect, demo, postgres):
    story = Story(connect(cluster.urls[0]), demo, postgres.url())
    yield story
    for each in (*story.incidents("waves"), *story.incidents("absolute")):
        happened = [event["event"] for event in each["events"]]
        print(each["state"], each["sentence"], happened, each["bisection"])  # noqa: T201 - shown where a test failed


@pytest.mark.long(most_s=3600)
def test_the_commit_that_made_a_gradient_slower_is_told_once_and_resolved_by_the_one_that_mends_it(
    story, cluster, demo, receivers, start_agent, until, github
):
    hooks, mailbox = receivers
    story.begin("waves", hooks)
    killer = start_agent()
    for number in range(5, COMMITS + 1, 5):
        story.measure([number])
        until(story.is_settled, PATIENCE_S, f"commit {number} to be measured, and what it brought to be answered")
    slower, wrong = until(lambda: found(story), PATIENCE_S, "both commits to be found")

    # One incident of each, and each names its commit.
    assert [each["kind"] for each in story.incidents() if each["kind"] != "better"] == ["worse", "wrong_gradient"]
    assert slower["bisection"]["culprit"] == slower["commit"]["sha"] == demo.sha(UNFUSED)
    assert wrong["bisection"]["culprit"] == wrong["commit"]["sha"] == demo.sha(BROKEN)
    happened = [event["event"] for event in slower["events"]]
    assert happened.index("confirming") < happened.index("confirmed") < happened.index("culprit")
    assert {each["evidence"] for each in slower["evidence"]} == {"exact", "paired"}
    assert "one array more in each call" in slower["sentence"]
    assert IS_REAL or killer.killed == {"worker": 1, "service": 1, "postgres": 1}

    # The other commits say which one mended it.
    measured = {job["commit"]["sha"] for job in story.jobs() if job["kind"] == "run"}
    story.measure(number for number in range(1, COMMITS + 1) if demo.sha(number) not in measured)
    until(story.is_settled, PATIENCE_S, "the other commits to be measured")
    slower, wrong = until(lambda: found(story, ended=MENDED), PATIENCE_S, "the commit that mended it")
    assert (slower["state"], slower["commit"]["sha"]) == ("resolved", demo.sha(UNFUSED))
    assert (wrong["state"], wrong["commit"]["sha"]) == ("confirmed", demo.sha(BROKEN))

    # Whoever reads channels has each message once, and no other.
    expected = Counter({"confirmed": 1, "culprit": 2, "resolved": 1, "wrong_gradient": 1})
    for kind in ("webhook", "slack"):
        until(lambda kind=kind: len(arrived(hooks, f"/waves/{kind}")) >= 5, what=f"all messages by {kind}")
    until(lambda: len({mail["Message-ID"] for mail in mailbox.mails}) >= 5, what="all mails")
    told = {id_: json.loads(each.body) for id_, each in arrived(hooks, "/waves/webhook").items()}
    assert Counter(each["event"] for each in told.values()) == expected
    assert len(arrived(hooks, "/waves/slack")) == 5
    mails = {mail["Message-ID"]: mail["Pullback-Event"] for mail in mailbox.mails}
    assert Counter(mails.values()) == expected
    confirmed = [id_ for id_, each in told.items() if each["event"] == "confirmed"]
    sent_at = int(arrived(hooks, "/waves/webhook")[confirmed[0]].headers["pullback-timestamp"])
    measured_at = datetime.fromisoformat(story.api.job(slower["job_id"])["finished_at"]).timestamp()
    assert sent_at - measured_at < 60
    assert "waves" in told[confirmed[0]]["facts"]["variants"]

    pages_say_the_same(cluster.urls[0], demo, slower, wrong)
    the_gate_fails_a_branch_with_the_same_change(cluster, demo, github)
    assert [each["id"] for each in story.incidents() if each["kind"] != "better"] == [slower["id"], wrong["id"]]


def the_gate_fails_a_branch_with_the_same_change(cluster, demo, github):
    """It is measured in turns against the commit before, by the agent, and the pull request gets one comment and a check run."""
    head = demo.repeat_on_branch(UNFUSED)
    event = demo.folder.parent / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": head}}}))
    environment = {
        "GITHUB_EVENT_PATH": str(event), "GITHUB_BASE_REF": "main", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": github.url,
        "GITHUB_TOKEN": "secret", "PULLBACK_SERVER": cluster.urls[0],
    }  # fmt: skip
    done = cluster.product.run("check", "--suite", "quick", "--wait", "90s", cwd=demo.folder, environment=environment)
    assert done.returncode == 3, done.stdout + done.stderr
    (comment,) = github.comments
    rows = [line for line in comment["body"].splitlines() if line.startswith("| regression")]
    assert rows, comment["body"]
    assert all("sines" in row and "cosines" not in row for row in rows)
    assert [(run["head_sha"], run["conclusion"]) for run in github.check_runs] == [(head, "failure")]


def found(story, ended=None):
    """The two incidents, once their commits are found, and the first one is resolved where that is asked; None before."""
    by_kind = {each["kind"]: each for each in story.incidents()}
    both = by_kind.get("worse"), by_kind.get("wrong_gradient")
    if any(each is None or (each["bisection"] or {}).get("state") != "found" for each in both):
        return None
    is_ended = both[0]["ended"] is not None and both[0]["ended"]["sha"] == story.demo.sha(ended or MENDED)
    return both if ended is None or is_ended else None


def pages_say_the_same(url, demo, slower, wrong):
    """The incident, the commit, the overview, the feed and the badge."""
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:

        def page(path):
            answer = http.get(path)
            assert answer.status_code == 200, answer.text
            return answer.text

        for incident in (slower, wrong):
            shown = page(f"/projects/waves/incidents/{incident['id']}")
            assert incident["commit"]["sha"][:7] in shown
            assert f"/projects/waves/incidents/{incident['id']}" in page(
                f"/projects/waves/commits/{incident['commit']['sha']}"
            )
        overview = json.loads(page("/overview.json?project=waves"))
        assert [line["id"] for line in overview["incidents"]] == [wrong["id"]]
        feed = page("/projects/waves/feed.atom")
        named = {number for number in range(1, COMMITS + 1) if demo.sha(number)[:7] in feed}
        assert named <= {UNFUSED, MENDED, BROKEN}
        assert BROKEN in named  # the feed tells the news of the newest commits
        badge = page("/projects/waves/workloads/sines.badge.svg?variant=waves")
        assert IS_REAL or "2.0× faster than unfused" in badge


@pytest.mark.long
def test_without_an_agent_the_same_commits_are_told_as_likely_three_commits_late_at_most(story, demo, receivers, until):
    hooks, _ = receivers
    story.begin("absolute", hooks)
    told_at = None
    for number in range(1, COMMITS + 1):
        seconds = 1e-3 * (1.3 if UNFUSED <= number < MENDED else 1.0) * (1 + 0.004 * ((number * 7) % 5 - 2) / 2)
        results = {
            "results": [{"command": "sines", "mean": seconds, "times": [seconds, 1.001 * seconds, 0.999 * seconds]}]
        }
        said = {"project": "absolute", "commit": demo.sha(number), "branch": "main", "machine": "ci"}
        answer = story.api.http.post("/api/v1/reports", params=said, json=results)
        assert answer.is_success, answer.text
        until(story.is_looked_at, what="a look at the upload")
        begun = [
            event for each in story.incidents("absolute") for event in each["events"] if event["event"] == "likely"
        ]
        told_at = told_at or (number if begun else None)
    assert told_at is not None
    assert told_at <= UNFUSED + 3
    (told,) = [each for each in story.incidents("absolute") if any(event["told"] for event in each["events"])]
    assert (told["state"], told["commit"]["sha"], told["ended"]["sha"]) == (
        "resolved", demo.sha(UNFUSED), demo.sha(MENDED),
    )  # fmt: skip
    until(lambda: len(arrived(hooks, "/absolute/webhook")) == 2, what="both messages")
    events = [json.loads(each.body)["event"] for each in arrived(hooks, "/absolute/webhook").values()]
    assert sorted(events) == ["likely", "resolved"]
