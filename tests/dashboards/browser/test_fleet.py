"""Fleet, machines, queue and jobs over the real application; its agents are clients that keep to the protocol."""

import csv
import io
import re

import httpx
import pytest

MACHINE = {"cpu": "EPYC 7B13", "cores": 8, "memory_gib": 31, "numpy": "2.3.4"}
HTML = {"accept": "text/html"}


class Agent:
    """An agent that does as it is told."""

    def __init__(self, client, name, labels=None, facts=MACHINE, agent=None):
        machine = {"fingerprint": f"print of {name}", "name": name, "facts": facts}
        told = {"name": agent or name, "labels": labels or {}, "machine": machine}
        enrolled = client.post("/api/v1/agents/enroll", json=told).raise_for_status().json()
        self.client, self.id, self.machine_id = client, enrolled["agent_id"], enrolled["machine_id"]

    def claim(self, **told):
        answer = self.client.post(f"/api/v1/agents/{self.id}/claim", json=told).raise_for_status()
        if answer.status_code == 204:
            return None
        claim = answer.json()
        self.lease = claim["lease_token"]
        self.attempt = f"/api/v1/jobs/{claim['job']['id']}/attempts/{claim['attempt']}"
        self.written = 0
        return claim["job"]["id"]

    def write(self, text):
        content = text.encode()
        url = f"{self.attempt}/log?offset={self.written}"
        self.client.put(url, content=content, headers={"Pullback-Lease": self.lease}).raise_for_status()
        self.written += len(content)

    def beat(self, phase, done, total, message):
        told = {
            "lease_token": self.lease,
            "phase": phase,
            "progress": {"done": done, "total": total, "message": message},
        }
        return self.client.post(f"{self.attempt}/heartbeat", json=told).raise_for_status().json()["answer"]

    def fail(self, kind, message, *, retryable=False):
        told = {"lease_token": self.lease, "kind": kind, "message": message, "retryable": retryable}
        self.client.post(f"{self.attempt}/fail", json=told).raise_for_status()


def ask(client, number, **changes):
    commit = {"sha": f"{number:040x}", "title": f"Change {number}", **changes.pop("commit", {})}
    wanted = {"project": "p", "commit": commit, "suite": "quick", **changes}
    return client.post("/api/v1/jobs", json=wanted).raise_for_status().json()["id"]


def text_of(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


@pytest.fixture
def service(empty_base):
    """A client of an application where nothing has happened yet."""
    with httpx.Client(base_url=empty_base, timeout=30) as client:
        yield client


@pytest.mark.long
def test_pages_tell_what_machines_and_jobs_do(service, made):  # noqa: PLR0915 - many looks at one running service
    def page(path, **query):
        answer = service.get(path, params=query, headers=HTML)
        assert answer.status_code == 200, answer.text
        return text_of(answer.text)

    def view(path, **query):
        return service.get(f"{path}.json", params=query).raise_for_status().json()

    # Nothing has happened: what to do is said.
    assert f"pullback agent --server {service.base_url}".rstrip("/") in page("/fleet")
    assert "pullback job create --project NAME" in page("/jobs")
    assert view("/fleet")["words"] == "No machines yet; no jobs waiting."

    lab, other = Agent(service, "lab-7"), Agent(service, "lab-10", {"gpu": "h200"})
    Agent(service, "lab-7", facts=MACHINE | {"numpy": "2.4.0"})
    first = ask(service, 1)
    lab.claim(spool={"waiting": 2, "bytes": 4096})
    lab.beat("measure", 3, 6, "poly9[n=10]: group 3 of 6")
    other.claim(refuses="the disk is full")
    pinned = ask(service, 2, machine_id=other.machine_id)
    fork = ask(service, 3, commit={"fork": "someone/gradients"})
    needy = ask(service, 4, requires={"gpu": "b200"})
    behind = [ask(service, 100 + number) for number in range(60)]

    fleet = view("/fleet")
    assert fleet["words"] == "2 machines: 1 at work, 1 not taking jobs; 63 jobs waiting."
    assert [machine["name"] for machine in fleet["machines"]] == ["lab-7", "lab-10"]
    agent = fleet["machines"][0]["agents"][0]
    assert (agent["job_id"], agent["phase"], agent["spool_waiting"]) == (first, "measure", 2)
    assert any("No worker is running" in finding for finding in fleet["service"]["findings"])
    shown = page("/fleet")
    for words in (
        "measuring",
        "poly9[n=10]: group 3 of 6",
        "2 deliveries",
        "the disk is full",
        "2.0 % assumed",
        "No worker is running",
    ):
        assert words in shown

    # The queue: in its own order, why each waits, a page at a time, by any property.
    queue = view("/jobs")
    assert [row["job"]["id"] for row in queue["running"]] == [first]
    last = view("/jobs", page=2)["waiting"]
    why = {row["job"]["id"]: (row["reason"], row["starts"], row["takes"]) for row in [*queue["waiting"], *last]}
    assert why[pinned] == ("refused", "not yet", "no estimate")
    assert why[fork][0] == "approval"
    assert why[needy][0] == "labels"
    # It begins when the one before it ends, and nobody knows how long a quick suite takes here.
    assert why[behind[0]][0] == "turn"
    assert why[behind[0]][1].startswith(("in about", "soon", "now"))
    assert why[behind[0]][2] == "no estimate"
    assert why[behind[1]][1] == "no estimate"
    assert [row["job"]["id"] for row in queue["waiting"]] == behind[:50]
    assert [row["job"]["id"] for row in last] == [*behind[50:], pinned, fork, needy]  # which nobody can take yet
    later = service.get(queue["later_href"], headers=HTML)
    assert f">{pinned}</a>" in later.text
    assert f">{behind[0]}</a>" not in later.text
    assert [row["job"]["id"] for row in view("/jobs", state="queued", machine="lab-10")["waiting"]] == [pinned]
    assert view("/jobs", project="", suite="nope")["empty"]["title"] == "No jobs match"
    rows = list(csv.DictReader(io.StringIO(service.get("/jobs.csv").text)))
    assert (rows[0]["machine"], rows[1]["machine"], len(rows)) == ("lab-7", "", 51)
    for query, status in (
        ({"state": "lazy"}, 422),
        ({"machine": "nobody"}, 404),
        ({"page": 3}, 404),
        ({"page": 0}, 422),
    ):
        assert service.get("/jobs", params=query, headers=HTML).status_code == status

    # A result makes forecasts of its like.
    report = made.made_report(4, project="p", machine="lab-7")
    report["commit"]["sha"], report["machine"]["fingerprint"] = f"{1:040x}", "print of lab-7"
    service.post(f"{lab.attempt}/report", json=report, headers={"Pullback-Lease": lab.lease}).raise_for_status()
    assert [chore["task"] for chore in view("/fleet")["service"]["chores"]] == ["follow_up_report"]
    queue = view("/jobs")
    told = {row["job"]["id"]: row for row in queue["waiting"]}[behind[0]]
    assert (told["starts"], told["where"], told["why"]) == ("now", "lab-7", "A machine is free.")
    assert told["takes_s"] >= 0
    assert [job["state"] for job in queue["ended"]] == ["done"]

    machine = view(f"/machines/{lab.machine_id}")
    assert [(fact["name"], fact["before"], fact["now"]) for change in machine["changes"] for fact in change["facts"]][
        -1
    ] == (
        "numpy",
        "2.3.4",
        "2.4.0",
    )
    assert [job["id"] for job in machine["jobs"]] == [first]
    assert machine["line"]["quality"]["words"] == "1 of 1 clean"
    # What compares a commit with itself is offered as it works there: by the agent, or by hand where there is none.
    base = str(service.base_url).rstrip("/")
    assert machine["noise_command"] == (
        f"pullback job create --project p --commit {1:040x} --against {1:040x} "
        f"--suite quick --machine {lab.machine_id} --server {base}"
    )
    uploaded = made.made_report(5, project="p", machine="laptop")
    service.post("/api/v1/reports", json=uploaded).raise_for_status()
    by_hand = next(each["id"] for each in service.get("/api/v1/machines").json()["items"] if each["name"] == "laptop")
    for machine_id, how in ((lab.machine_id, "job create"), (by_hand, f"noise.json --server {base}")):
        told = page(f"/machines/{machine_id}")
        assert all(words in told for words in ("No A/A comparisons in this period", how))
    assert service.get("/machines/999", headers=HTML).status_code == 404

    # A job page reads without a script, and decides by forms.
    job = view(f"/jobs/{pinned}")
    assert (job["why"], job["decisions"]["cancel"]) == (
        "Only lab-10 may take it, and it takes no jobs: the disk is full",
        True,
    )
    assert "No agent has taken this job yet." in page(f"/jobs/{pinned}")
    assert service.post(f"/jobs/{pinned}/cancel").status_code == 303
    assert view(f"/jobs/{pinned}")["job"]["state"] == "cancelled"
    assert service.post(f"/jobs/{pinned}/retry").headers["location"] == f"/jobs/{pinned}"
    assert view(f"/jobs/{pinned}")["job"]["state"] == "queued"
    assert service.post(f"/jobs/{fork}/approve").status_code == 303
    assert view(f"/jobs/{fork}")["job"]["awaits_approval"] is False
    refused = service.post(f"/jobs/{first}/retry", headers=HTML)
    assert refused.status_code == 409
    assert "is done and has its result" in text_of(refused.text)
    assert service.post("/jobs/999/cancel", headers=HTML).status_code == 404
    assert service.post("/jobs/0/cancel", headers=HTML).status_code == 422
    assert service.post(f"/jobs/{first}/cancel", headers={"origin": "https://evil.example"}).status_code == 403

    # The end of a long log, from a whole line on; the rest is a link away.
    long = lab.claim()
    lab.write("".join(f"line {number}\n" for number in range(20_000)))
    log = view(f"/jobs/{long}")["log"]
    assert re.match(r"line \d+\n", log["text"])
    assert log["text"].endswith("line 19999\n")
    assert log["left_out"] + len(log["text"]) == log["end"] == lab.written


def test_who_may_not_decide_is_told_so_and_cannot(guarded_base):
    with httpx.Client(base_url=guarded_base, headers={"authorization": "Bearer the-secret"}) as admin:
        job = ask(admin, 1)
        tokens = {
            scope: admin.post("/api/v1/tokens", json={"name": scope, "scopes": ["read", scope]})
            .raise_for_status()
            .json()
            for scope in ("read", "upload")
        }
        for scope, status in (("read", 403), ("upload", 303)):
            with httpx.Client(base_url=guarded_base, headers=HTML) as browser:
                browser.post("/login", data={"token": tokens[scope]["token"]})
                shown = browser.get(f"/jobs/{job}")
                proof = re.search(r'name="csrf" value="([0-9a-f]{128})"', shown.text)[1]
                assert (f'action="/jobs/{job}/cancel"' in shown.text) == (scope == "upload")
                assert ("Cancelling needs a token with the scope upload" in text_of(shown.text)) == (scope == "read")
                assert browser.post(f"/jobs/{job}/cancel").status_code == 403  # without the CSRF token of our own page
                assert browser.post(f"/jobs/{job}/approve", data={"csrf": proof}).status_code == 403
                assert browser.post(f"/jobs/{job}/cancel", data={"csrf": proof}).status_code == status
        line = admin.get("/api/v1/audit").json()["items"][0]
        assert (line["action"], line["subject"]) == ("cancel_job", f"job {job}")
    with httpx.Client(base_url=guarded_base, headers=HTML) as nobody:
        for address in ("/fleet", "/fleet.json", "/machines/1", "/jobs", "/jobs.csv"):
            assert nobody.get(address).status_code == 401, address


END_IS_SEEN = """(log) => {
  const all = document.createRange();
  all.selectNodeContents(log);
  return log.scrollHeight > log.clientHeight && all.getBoundingClientRect().bottom <= log.getBoundingClientRect().bottom;
}"""
BEGINNING_IS_SEEN = """(log) => {
  const all = document.createRange();
  log.scrollTop = -log.scrollHeight;
  all.selectNodeContents(log);
  return all.getBoundingClientRect().top >= log.getBoundingClientRect().top;
}"""


@pytest.mark.long
@pytest.mark.browser
def test_the_log_of_a_job_that_failed_opens_at_its_end(empty_base, visit):
    with httpx.Client(base_url=empty_base, timeout=30) as service:
        agent = Agent(service, "lab-9")
        job = ask(service, 1)
        agent.claim()
        agent.write("".join(f"building {number}\n" for number in range(200)))
        agent.fail("build", "It does not build.")
        for width in (1440, 390):
            log = visit(f"/jobs/{job}", at=empty_base, width=width).locator("#log")
            assert log.evaluate(END_IS_SEEN)
            assert log.evaluate(BEGINNING_IS_SEEN)


@pytest.mark.browser
def test_a_job_is_followed_live_cancelled_and_retried(empty_base, visit):
    with httpx.Client(base_url=empty_base, timeout=30) as service:
        agent = Agent(service, "lab-9")
        job = ask(service, 1)
        agent.claim()
        agent.write("building <b>the</b> engine\n")
        page = visit(f"/jobs/{job}", at=empty_base)
        log, state = page.locator("#log"), page.locator("#state")
        page.locator("#log-live", has_text="live").wait_for()
        assert "building <b>the</b> engine" in log.inner_text()

        agent.write("measuring \N{MICRO SIGN}s\n")
        agent.beat("measure", 3, 6, "poly9_broadcast")
        page.locator("#log", has_text="measuring \N{MICRO SIGN}s").wait_for()
        page.locator("#state", has_text="3 of 6").wait_for()
        assert page.locator(".way [aria-current=step]").inner_text().endswith("measuring")
        assert log.inner_text().count("building") == 1
        assert "3 of 6" in visit("/", at=empty_base).locator("main").inner_text()
        assert "lab-9" in visit("/jobs", at=empty_base).locator("table").first.inner_text()
        reading = visit(f"/jobs/{job}", at=empty_base, javascript=False)
        assert "measuring" in reading.locator("#log").inner_text()
        assert reading.get_by_role("link", name="Reload").is_visible()

        # Cancelling what runs loses something, so that it takes two steps.
        page.get_by_text("Cancel…").click()
        assert "discarded" in page.locator("#decide").inner_text()
        page.locator("h1").click()  # what is open stays open while the page keeps itself current
        agent.beat("measure", 4, 6, "poly9_broadcast")
        page.locator("#state", has_text="4 of 6").wait_for()
        assert page.locator("#decide details[open]").count() == 1
        page.get_by_role("button", name=f"Cancel job {job}").click()
        state.get_by_text("Cancelling: the agent").wait_for()
        assert agent.beat("measure", 5, 6, "") == "cancel"
        agent.fail("cancelled", "Cancelled by request.")
        state.get_by_text("cancelled", exact=True).first.wait_for()
        page.locator("#log-live", has_text="ended").wait_for()

        assert (
            page.locator("main").inner_text().count("Cancelled by request.") == 1
        )  # of the job, whose one attempt it was
        page.get_by_role("button", name="Retry").click()
        page.locator("#state", has_text="A machine is free.").wait_for()
        page.locator("#log-live", has_text="live").wait_for()
        assert agent.claim() == job
        agent.write("the second try\n")
        page.locator("#log", has_text="the second try").wait_for()
        assert "building" not in log.inner_text()
        page.locator("#attempts", has_text="Cancelled by request.").wait_for()
        page.set_viewport_size({"width": 390, "height": 800})
        for address in (f"/jobs/{job}", "/jobs", "/fleet", f"/machines/{agent.machine_id}"):
            page.goto(empty_base + address)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, address
