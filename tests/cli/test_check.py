"""`pullback check` against a service that listens, with a small double of GitHub's API."""

import json
import os
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import httpx
import pytest
from tests.cli.github import GitHubDouble
from tests.service.conftest import make_case, make_report

from pullback_cli.main import main

CASE = {"workload": "dense_bias_act", "params": {"n": 100, "act": "tanh"}, "dtype": "f4", "device": "cpu"}
IN_TURNS = {
    "metric": "time", "outcome": "slower", "log_ratio": 0.05, "low": 0.04, "high": 0.06, "n": 20, "claim": 0.01,
    "margin": 0.01, "margin_is_provisional": False,
}  # fmt: skip
SAME = {**IN_TURNS, "outcome": "same", "log_ratio": 0.0, "low": -0.005, "high": 0.005}
WRONG = {"ok": False, "max_rel_error": 0.5, "oracle": "closed form"}


@pytest.fixture
def clone(tmp_path):
    """A clone of a project: main has two commits, and topic, which is checked out, branched off at the first one."""
    folder = tmp_path / "clone"
    folder.mkdir()

    def git(*arguments):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *identity, "-C", str(folder), *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    (folder / "pullback.toml").write_text('[project]\nname = "demo"\n')
    git("add", "-A")
    git("commit", "--quiet", "-m", "base")
    git("commit", "--quiet", "--allow-empty", "-m", "later")
    git("checkout", "--quiet", "-b", "topic", "HEAD~1")
    git("commit", "--quiet", "--allow-empty", "-m", "head")
    return Clone(folder, git)


class Clone:
    def __init__(self, folder, git):
        self.folder, self.git = folder, git
        self.base, self.later, self.head = (git("rev-parse", each) for each in ("topic~1", "main", "topic"))

    def commit(self, branch, revision):
        parents = self.git("rev-list", "--parents", "-1", revision).split()[1:]
        told = {"sha": self.git("rev-parse", revision), "parents": parents, "branch": branch, "dirty": False}
        return told | {"authored_at": self.git("show", "-s", "--format=%aI", revision), "title": "t", "author": "A"}


@pytest.fixture
def upload(service, clone):
    """Upload a report of the base or of the head; the history of main is known."""
    log = [{"sha": clone.later, "parents": [clone.base]}, {"sha": clone.base, "parents": []}]
    told = {"project": "demo", "branch": "main", "commits": log}
    assert httpx.post(f"{service}/api/v1/commits", json=told).is_success

    def upload(where, *, statements=(), **changes):
        report = make_report(**changes)
        report["commit"] = clone.commit(*{"base": ("main", "main~1"), "head": ("topic", "topic")}[where])
        report["comparisons"] = [
            {"case": CASE, "variant": "fused", "reference": clone.base, "candidate": clone.head, **each}
            for each in statements
        ]
        answer = httpx.post(f"{service}/api/v1/reports", json=report)
        assert answer.status_code == 201, answer.text

    return upload


@pytest.fixture
def pullback(service, clone, monkeypatch, capfd):
    """Run the command in the clone, in this process, as CI would where it says so."""

    def run(*arguments, server=service, environment=None):
        monkeypatch.chdir(clone.folder)
        for name in [name for name in os.environ if name.startswith(("GITHUB_", "CI_", "PULLBACK_TOKEN"))]:
            monkeypatch.delenv(name)
        for name, value in {"COLUMNS": "200", "PULLBACK_SERVER": server, **(environment or {})}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["pullback", "check", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return subprocess.CompletedProcess(arguments, ended.value.code, *capfd.readouterr())

    return run


def more_memory():
    case = make_case()
    case["variants"][1]["metrics"]["array_bytes"]["value"] = 2048.0
    return case


BASE = {"cases": [make_case(), make_case("other")]}
FAIL_ON_LIKELY = ("--fail-on", "regression,likely")
FAIL_ON_AMBIGUOUS = ("--fail-on", "ambiguous")
UNDECIDED = {**IN_TURNS, "outcome": "ambiguous", "log_ratio": 0.02, "low": -0.01, "high": 0.05}
OUTCOMES = {
    "nothing": (BASE, [], (), 0, "No change found"),
    "slower in turns": (BASE, [IN_TURNS], (), 3, "1 regression at"),
    "a changed count": ({"cases": [more_memory(), make_case("other")]}, [], (), 3, "1 regression at"),
    "likely": ({"cases": [make_case(), make_case("other", log_ratio=-0.2)]}, [], (), 0, "1 likely regression"),
    "likely, failed on": (
        {"cases": [make_case(), make_case("other", log_ratio=-0.2)]}, [], FAIL_ON_LIKELY, 8, "1 likely regression",
    ),
    "missing": ({"cases": [make_case()]}, [], (), 4, "2 missing results"),
    "missing, not failed on": ({"cases": [make_case()]}, [], ("--fail-on", "regression"), 0, "2 missing results"),
    "a wrong gradient": ({"cases": [make_case(gradient=WRONG), make_case("other")]}, [], (), 5, "1 wrong gradient"),
    "a wrong gradient and a regression": (
        {"cases": [more_memory(), make_case("other", gradient=WRONG)]}, [], (), 5, "1 wrong gradient and 1 regression",
    ),
    "ambiguous": (BASE, [UNDECIDED], (), 0, "1 ambiguous result"),
    "ambiguous, failed on": (BASE, [UNDECIDED], FAIL_ON_AMBIGUOUS, 6, "1 ambiguous result"),
    "faster": (BASE, [{**IN_TURNS, "outcome": "faster", "log_ratio": -0.05, "low": -0.06, "high": -0.04}], (), 0, "1 imp"),
}  # fmt: skip


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_exit_status_and_the_first_sentence_are_the_answer(pullback, upload, clone, outcome):
    head, statements, options, status, said = OUTCOMES[outcome]
    upload("base", **BASE)
    upload("head", statements=statements, **head)
    done = pullback("--base", "main", "--wait", "0", *options)
    assert done.returncode == status, done.stdout + done.stderr
    first = done.stdout.splitlines()[0]
    assert f"at {clone.head[:10]} against {clone.base[:10]}, the merge base with main" in first
    assert said in first
    answer = json.loads(pullback("--base", "main", "--wait", "0", "--json", *options).stdout)
    assert (answer["status"], answer["sentence"]) == (status, first)
    assert (answer["conclusion"] == "failure") == (status > 1)
    assert (answer["reproduce"] is None) == (
        status == 0 and "1 likely" not in said and "missing" not in said and "amb" not in said
    )


def test_a_budget_of_the_rules_fails_where_it_is_asked_for(pullback, upload, clone, service):
    upload("base", **BASE)
    upload("head", cases=[more_memory(), make_case("other")])
    rules = {"rules": [{"metric": "array_bytes", "variant": "fused", "budget": 2000}]}
    assert httpx.put(f"{service}/api/v1/rules", params={"project": "demo"}, json=rules).is_success
    failed = pullback("--base", "main", "--wait", "0", "--fail-on", "budget")
    assert (failed.returncode, "1 value over its budget" in failed.stdout.splitlines()[0]) == (7, True)
    assert "array_bytes is 2048, budget 2000 (rule 1 of pullback.toml)" in " ".join(failed.stdout.split())
    assert pullback("--base", "main", "--wait", "0").returncode == 3  # a budget is failed on where that is said


def test_changes_are_written_so_that_their_ends_can_be_told_apart(pullback, upload):
    cases = [make_case(), make_case()]
    for case, size in zip(cases, (24_000.0, 24_010.0), strict=True):
        case["variants"][1]["metrics"]["array_bytes"]["value"] = size
    large = {**IN_TURNS, "log_ratio": 0.5, "low": 0.2, "high": 0.8}
    upload("base", cases=cases[:1])
    upload("head", cases=cases[1:], statements=[large])
    table = pullback("--base", "main", "--wait", "0").stdout
    assert "24,000 B to 24,010 B  " in table
    assert "1.65× (1.22× to 2.23×)" in table


def test_a_reader_gets_a_table_with_evidence_and_the_command_to_see_it_again(pullback, upload, clone):
    upload("base", machine="small")
    upload("head", machine="small", statements=[SAME])
    upload("base", **BASE)
    upload("head", statements=[IN_TURNS], **BASE)
    done = pullback("--base", "main", "--wait", "0")
    assert done.returncode == 3
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("regression")]
    assert "+5.1 % (+4.1 % to +6.2 %)" in row
    assert "in turns, 20 groups; small: same" in row
    assert row.rstrip().endswith("box")
    assert (
        f"pullback compare --against {clone.base[:10]} --candidate {clone.head[:10]} --suite quick "
        "--case 'dense_bias_act[n=100,act=tanh,f4,cpu]' --variant fused"
    ) in done.stdout
    assert "measured at different times" in done.stdout


def test_not_enough_data_is_an_answer_of_its_own_with_what_would_give_them(pullback, upload, clone):
    upload("head")
    done = pullback("--base", "main")
    assert done.returncode == 1
    assert done.stdout.startswith(
        f"Not enough data. Commit {clone.base}, the merge base of {clone.head[:10]} and 'main',"
    )
    answer = json.loads(pullback("--base", "main", "--json").stdout)
    assert (answer["conclusion"], answer["check"]["base"]["sha"]) == ("neutral", clone.base)
    upload("base", machine="another")
    assert "measure both on one machine" in pullback("--base", "main").stdout


def test_results_of_which_most_are_at_another_level_are_not_enough_data(pullback, upload):
    def measured_by(release, *workloads):
        cases = [make_case(workload) for workload in workloads]
        for variant in (variant for case in cases for variant in case["variants"]):
            for metric in ("time", "array_bytes"):
                variant["metrics"][metric]["method"] = release
        return cases

    upload("base", cases=measured_by("1", "a", "b", "c"))
    upload("head", cases=[*measured_by("2", "a", "b"), *measured_by("1", "c")])
    done = pullback("--base", "main", "--wait", "0")
    assert done.returncode == 1
    assert done.stdout.startswith("Not enough data. 8 of 12 series that both commits have cannot be compared")


def test_a_commit_or_a_base_that_the_service_does_not_know_is_not_enough_and_how_to_tell_it_is_said(
    pullback, upload, clone
):
    upload("base")
    done = pullback("--head", "f" * 40, "--base", "main", "--json")
    assert done.returncode == 1
    assert f"Unknown commit {'f' * 40}" in json.loads(done.stdout)["sentence"]
    assert "pullback log" in json.loads(done.stdout)["sentence"]
    upload("head")
    assert pullback("--base", "mian").returncode == 1


def test_a_head_that_the_service_does_not_know_is_told_by_the_clone_and_comes_onto_no_branch(
    service, pullback, upload, clone
):
    upload("base")
    clone.git("commit", "--quiet", "--allow-empty", "-m", "newest")
    head = clone.git("rev-parse", "HEAD")
    answer = json.loads(pullback("--base", "main", "--json").stdout)
    assert answer["check"]["base"]["sha"] == clone.base
    assert (answer["status"], "Unknown" in answer["sentence"], head[:10] in answer["sentence"]) == (1, False, True)
    branches = httpx.get(f"{service}/api/v1/branches", params={"project": "demo"}).json()["items"]
    assert [branch["name"] for branch in branches] == ["main"]


@pytest.mark.long
def test_what_cannot_be_asked_is_one_sentence(pullback, upload, clone, tmp_path):
    upload("base")
    for options, said in {
        ("--fail-on", "slow"): "'slow' is not a kind of finding; give any of wrong-gradient, regression",
        ("--wait", "soon"): "--wait 'soon' is not a duration",
        ("--markdown", str(tmp_path / "no" / "file")): "--markdown",
        ("--project", "other"): "other",
        ("--suite", "fast"): "fast",
        ("--base", "HEAD~9"): "no revision 'HEAD~9'",
    }.items():
        done = pullback(*options)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
        assert said in done.stderr
    away = pullback("--base", "main", server="http://127.0.0.1:9")
    assert (away.returncode, away.stdout) == (75, "")
    assert "check --server" in away.stderr


def test_the_clone_tells_the_merge_base_where_the_service_had_not_heard_of_it(service, pullback, clone):
    """The service knows main up to the commit before the one from which topic branched off, and nobody measured that one."""
    clone.git("checkout", "--quiet", "main")
    clone.git("commit", "--quiet", "--allow-empty", "-m", "newest")
    clone.git("checkout", "--quiet", "-B", "topic", "main")
    clone.git("commit", "--quiet", "--allow-empty", "-m", "head")
    newest, head = clone.git("rev-parse", "main"), clone.git("rev-parse", "topic")
    for branch, revision in (("main", "main~1"), ("topic", "topic")):
        report = make_report() | {"commit": clone.commit(branch, revision)}
        assert httpx.post(f"{service}/api/v1/reports", json=report).status_code == 201
    told = {
        "project": "demo",
        "branch": "topic",
        "commits": [clone.commit("topic", each) for each in ("topic", "main")],
    }
    told["commits"] = [{"sha": each["sha"], "parents": each["parents"]} for each in told["commits"]]
    assert httpx.post(f"{service}/api/v1/commits", json=told).is_success
    assert json.loads(pullback("--base", "main", "--json").stdout)["check"]["base"]["sha"] == clone.later
    clone.git("update-ref", "refs/remotes/origin/main", newest)
    done = pullback("--base", "main")
    assert (done.returncode, f"Commit {newest}, the merge base of {head[:10]}" in done.stdout) == (1, True)


class Agent:
    """An agent that answers a job that compares two commits with what it is told."""

    def __init__(self, service, labels=None):
        self.http = httpx.Client(base_url=f"{service}/api/v1", timeout=30)
        machine = {"fingerprint": "fingerprint of bench", "name": "bench"}
        enrolment = {"name": "agent", "machine": machine, "labels": labels or {}}
        self.id = self.http.post("/agents/enroll", json=enrolment).json()["agent_id"]
        self.http.patch("/projects/demo", json={"repository": "https://git.example/demo"})

    def claim(self):
        return self.http.post(f"/agents/{self.id}/claim", json={"wait_s": 20, "kinds": ["run", "compare"]}).json()

    def answer(self, statement=None, failure=None):
        """Take the next job and end it, while somebody else waits for that."""

        def work():
            claim = self.claim()
            attempt = f"/jobs/{claim['job']['id']}/attempts/{claim['attempt']}"
            if failure is not None:
                told = {"lease_token": claim["lease_token"], "kind": "build", "message": failure}
                assert self.http.post(f"{attempt}/fail", json=told).is_success
                return
            report = make_report(machine="bench", cases=[], harness={**make_report()["harness"], "suite": "quick"})
            report["commit"] = {"sha": claim["job"]["commit"]["sha"], "parents": [], "dirty": False}
            report["comparisons"] = [
                {
                    "case": {**CASE, "workload": workload}, "variant": variant, "candidate": report["commit"]["sha"],
                    "reference": claim["job"]["reference"]["sha"], **statement,
                }
                for workload in ("dense_bias_act", "other") for variant in ("unfused", "fused")
            ]  # fmt: skip
            sent = self.http.post(f"{attempt}/report", json=report, headers={"Pullback-Lease": claim["lease_token"]})
            assert sent.is_success, sent.text

        thread = threading.Thread(target=work)
        thread.start()
        return thread


@pytest.fixture
def agent(service, upload):
    made = Agent(service)
    yield made
    made.http.close()


def test_what_was_not_measured_in_turns_is_asked_for_waited_for_and_answers(pullback, upload, agent):
    upload("base", **BASE)
    upload("head", cases=[make_case(), make_case("other", log_ratio=-0.2)])
    thread = agent.answer(SAME)
    done = pullback("--base", "main", "--wait", "60s")
    thread.join()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "job 1 is queued" in done.stderr
    (job,) = agent.http.get("/jobs", params={"project": "demo"}).json()["items"]
    assert (job["kind"], job["suite"], job["state"]) == ("compare", "quick", "done")
    assert "bench: same" in done.stdout  # beside what is likely on the other machine
    again = pullback("--base", "main", "--wait", "60s")
    assert (again.returncode, "job" in again.stderr) == (0, False)


def test_what_was_measured_on_a_gpu_is_asked_for_there(pullback, upload, clone, service):
    gpu = Agent(service, labels={"device": "cuda"})
    case = make_case()
    case["case"] = on_gpu = {**CASE, "device": "cuda"}
    upload("base", cases=[case])
    upload("head", cases=[case])
    thread = gpu.answer({**IN_TURNS, "case": on_gpu})
    done = pullback("--base", "main", "--wait", "60s")
    thread.join()
    (job,) = gpu.http.get("/jobs", params={"project": "demo"}).json()["items"]
    gpu.http.close()
    assert (job["requires"], job["state"]) == ({"device": "cuda"}, "done")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "dense_bias_act[n=100,act=tanh,f4,cuda]" in done.stdout
    assert f"--candidate {clone.head[:10]} --device cuda --suite quick --case" in done.stdout


@pytest.mark.long
def test_pairs_alone_answer_where_neither_commit_was_measured_by_itself(pullback, upload, clone, agent, service):
    told = {"project": "demo", "branch": "topic", "commits": [{"sha": clone.head, "parents": [clone.base]}]}
    assert httpx.post(f"{service}/api/v1/commits", json=told).is_success
    thread = agent.answer(IN_TURNS)
    narrowed = ["--case", "dense*", "--case", "other", "--variant", "unfused", "--variant", "fused"]
    done = pullback("--base", "main", "--wait", "60s", "--suite", "trial", *narrowed)
    thread.join()
    assert (done.returncode, "4 regressions" in done.stdout) == (3, True), done.stdout + done.stderr
    job = agent.http.get("/jobs/1").json()
    assert (job["suite"], job["cases"], job["variants"]) == ("trial", ["dense*", "other"], ["unfused", "fused"])


@pytest.mark.long
def test_a_wait_that_ends_without_an_answer_is_not_enough_data_and_says_so(pullback, upload, agent):
    upload("base")
    upload("head")
    done = pullback("--base", "main", "--wait", "0.1s")
    assert done.returncode == 1
    assert "Job 1, which measures both in turns, is not done after 0.1s: job 1 is queued." in done.stdout
    assert agent.http.post("/jobs/1/cancel").is_success
    thread = agent.answer(failure="does not build\nlog")
    failed = pullback("--base", "main", "--wait", "60s")
    thread.join()
    assert failed.returncode == 1
    assert "Job 2, which was to measure both in turns, failed: does not build." in failed.stdout
    assert pullback("--base", "main", "--wait", "0").returncode == 0


@pytest.fixture
def github():
    double = GitHubDouble()
    yield double
    double.close()


@pytest.fixture
def pull_request(github, clone, tmp_path):
    """The environment of a workflow at a pull request, which checks out a merge of it."""
    merge = clone.git("commit-tree", "-p", clone.later, "-p", clone.head, "-m", "merge", f"{clone.head}^{{tree}}")
    clone.git("checkout", "--quiet", "--detach", merge)
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": clone.head}}}))
    return {
        "GITHUB_EVENT_PATH": str(event), "GITHUB_BASE_REF": "main", "GITHUB_REPOSITORY": "o/r",
        "GITHUB_API_URL": github.url, "GITHUB_TOKEN": "secret",
    }  # fmt: skip


def test_a_pull_request_gets_a_check_run_and_one_comment_that_is_changed_in_place(
    pullback, upload, clone, github, pull_request
):
    upload("base")
    upload("head")
    quiet = pullback("--wait", "0", environment=pull_request)
    assert (quiet.returncode, github.comments) == (0, [])  # nothing changed: nothing to read
    assert f"Checked is {clone.head[:10]}, the head of the pull request" in quiet.stdout
    assert [(run["head_sha"], run["conclusion"]) for run in github.check_runs] == [(clone.head, "success")]
    upload("head", statements=[IN_TURNS])
    # Others write the marker too, and nothing is done with their comments. Ours is on another page.
    marker = "<!-- pullback-check demo -->"
    github.comments += [
        {"id": 1000 + number, "body": f"{marker} mine", "user": {"login": "stranger", "type": "User"}}
        for number in range(150)
    ]
    assert pullback("--wait", "0", environment=pull_request).returncode == 3
    (ours,) = [each for each in github.comments if each["user"]["type"] == "Bot"]
    assert ours["body"].startswith(f"{marker}\n**Pullback: 1 regression at ")
    assert github.check_runs[-1]["conclusion"] == "failure"
    assert github.check_runs[-1]["output"]["title"].startswith("1 regression at ")
    upload("head", machine="small", statements=[])
    upload(
        "head", statements=[{**IN_TURNS, "n": 60, "outcome": "same", "log_ratio": 0.0, "low": -0.004, "high": 0.004}]
    )
    assert pullback("--wait", "0", environment=pull_request).returncode == 0
    (changed,) = [each for each in github.comments if each["user"]["type"] == "Bot"]
    assert (changed["id"], "regression" in changed["body"].splitlines()[1]) == (ours["id"], False)
    assert all(each["body"] == f"{marker} mine" for each in github.comments if each["user"]["type"] == "User")
    assert {asked[2] for asked in github.asked} == {"Bearer secret"}


def test_a_comment_is_written_always_where_that_is_wished_also_by_an_account(pullback, upload, github, pull_request):
    github.account = "robot"
    upload("base")
    upload("head")
    for _ in range(2):
        done = pullback("--wait", "0", "--comment", "always", environment=pull_request)
        assert done.returncode == 0
    assert [each["user"]["login"] for each in github.comments] == ["robot"]
    assert "No change found" in github.comments[0]["body"]


@pytest.mark.long
def test_what_github_does_not_take_is_said_and_changes_nothing(pullback, upload, github, pull_request, tmp_path):
    github.refused = True
    upload("base")
    upload("head", statements=[IN_TURNS])
    run = tmp_path / "run.json"
    done = pullback("--wait", "0", "--github-check", run, environment=pull_request)
    assert done.returncode == 3
    assert "`permissions: {checks: write}`" in done.stderr
    assert "`permissions: {pull-requests: write}`" in done.stderr
    assert json.loads(run.read_text())["conclusion"] == "failure"
    gone = pullback("--wait", "0", environment={**pull_request, "GITHUB_API_URL": "http://127.0.0.1:9"})
    assert (gone.returncode, "does not answer" in gone.stderr) == (3, True)


def test_without_a_token_both_are_left_as_files_and_nobody_is_asked(
    pullback, upload, clone, github, pull_request, tmp_path
):
    strange = "@everyone see https://evil.example | `x` <b> #12 \x1b[31m\nnext"
    broken = make_case(error={"kind": "workload", "message": strange}, variants=[], paired=[])
    upload("base")
    upload("head", cases=[broken])
    files = [tmp_path / name for name in ("comment.md", "run.json", "junit.xml")]
    options = [part for pair in zip(("--markdown", "--github-check", "--junit"), files, strict=True) for part in pair]
    environment = {name: value for name, value in pull_request.items() if name != "GITHUB_TOKEN"}
    done = pullback("--wait", "0", *options, environment=environment)
    assert (done.returncode, github.asked) == (4, [])
    assert "\x1b" not in done.stdout
    text = files[0].read_text()
    (row, _) = [line for line in text.splitlines() if line.startswith("| missing")]
    assert "``@everyone see https://evil.example \\| `x` <b> #12 [31m next``" in row
    run = json.loads(files[1].read_text())
    assert (run["head_sha"], run["status"], run["conclusion"]) == (clone.head, "completed", "failure")
    assert run["output"]["text"] == text
    suite = ET.fromstring(files[2].read_text())  # noqa: S314 - our own file
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "0")
    assert [each.get("type") for each in suite.iter("failure")] == ["missing", "missing"]


def test_the_code_of_a_fork_is_not_run_before_somebody_approves_it(pullback, clone, upload, agent, pull_request):
    base, head = clone.commit("main", "main~1"), {"sha": clone.head, "parents": [clone.base]}
    log = {"project": "demo", "branch": "main", "commits": [{"sha": base["sha"], "parents": []}]}
    assert agent.http.post("/commits", json=log).is_success
    told = {"project": "demo", "commit": {**head, "fork": "stranger/r"}, "suite": "quick"}
    assert agent.http.post("/jobs", json=told).is_success  # somebody told the commit, and that it is a fork's
    event = {"pull_request": {"number": 7, "head": {"sha": clone.head, "repo": {"full_name": "stranger/r"}}}}
    Path(pull_request["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    del pull_request["GITHUB_TOKEN"]
    done = pullback("--wait", "0.1s", environment=pull_request)
    assert done.returncode == 1
    assert "waits for an administrator" in done.stdout
    (job, _) = agent.http.get("/jobs", params={"project": "demo"}).json()["items"]
    assert (job["kind"], job["trust"], job["awaits_approval"]) == ("compare", "untrusted", True)


def test_a_job_that_is_forbidden_is_not_enough_data(pullback, upload, agent, monkeypatch):
    from pullback_service.client import Client, ProblemError

    upload("base")
    upload("head")

    def forbidden(*_, **__):
        raise ProblemError(403, {"detail": "This needs the scope upload."})

    monkeypatch.setattr(Client, "create_job", forbidden)
    done = pullback("--base", "main")
    assert (done.returncode, "scope upload, or pass `--wait 0`" in done.stdout) == (1, True)
