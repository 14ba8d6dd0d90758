"""`pullback job` and the guide to it, against a service that listens."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from pullback_cli.jobs.id_completion import ids_that
from pullback_cli.main import app, main

GUIDE = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
MACHINE = {"fingerprint": "f", "name": "box"}


@pytest.fixture
def clone(tmp_path):
    repository = tmp_path / "clone"
    repository.mkdir()

    def git(*arguments):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, "-C", str(repository), *arguments], check=True, capture_output=True)
        return done.stdout.decode().strip()

    git("init", "--quiet", "--initial-branch=main")
    for title in ("one", "two", "three"):
        git("commit", "--quiet", "--allow-empty", "-m", title)
    return repository


@pytest.fixture
def pullback(service, clone, monkeypatch, capfd, database_url):
    """Run the command in the clone, in this process."""

    def run(*arguments, server=service):
        monkeypatch.chdir(clone)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setenv("PULLBACK_SERVER", server)
        monkeypatch.setenv("DATABASE_URL", database_url)
        monkeypatch.setattr(sys, "argv", ["pullback", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return subprocess.CompletedProcess(arguments, ended.value.code, *capfd.readouterr())

    return run


def sha_of(clone, revision="HEAD"):
    done = subprocess.run(["git", "-C", str(clone), "rev-parse", revision], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("command", ["list", "show", "create", "cancel", "retry", "approve", "priority", "backfill"])
def test_every_command_shows_how_it_is_used(command):
    shown = CliRunner().invoke(app, ["job", command, "--help"])
    assert shown.exit_code == 0
    assert "Examples" in shown.stdout
    assert f"pullback job {command}" in shown.stdout
    assert "--json" in shown.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_example_of_the_guide_works(pullback, service, clone):
    httpx.post(f"{service}/api/v1/agents/enroll", json={"name": "a", "machine": MACHINE})
    names = {"URL": service}
    ran = 0
    for line in (line for block in BLOCKS for line in block.splitlines() if line.strip()):
        program, *arguments = shlex.split(os.path.expandvars(line).replace("$ID", names.get("ID", "")), comments=True)
        assert program in {"pullback", "curl", "useradd", "apt-get"}, line
        if program in {"useradd", "apt-get"}:
            continue  # they add a user, and a package, to the machine
        if arguments[0] == "agent":
            # It works until it is stopped, so that only its options are tried here; tests/system starts it.
            shown = pullback(*arguments, "--help")
        elif program == "curl":
            shown = subprocess.run(  # noqa: S602 - the guide's own lines, which a shell has to read
                line, shell=True, env={**names, "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
            )
        else:
            shown = pullback(*arguments)
            if "--fork" in arguments:
                names["ID"] = shown.stdout.split()[0]
        assert shown.returncode == 0, (line, shown.stderr)
        ran += 1
    assert ran >= 19


def test_a_job_is_asked_for_shown_listed_and_decided_about(pullback, clone):
    made = json.loads(pullback("job", "create", "--project", "demo", "--suite", "quick", "--json").stdout)
    assert (made["commit"]["sha"], made["commit"]["title"]) == (sha_of(clone), "three")
    assert made["commit"]["parents"] == [sha_of(clone, "HEAD~1")]
    again = json.loads(pullback("job", "create", "--project", "demo", "--suite", "quick", "--json").stdout)
    assert again["id"] == made["id"]
    assert pullback("job", "cancel", made["id"]).stdout.startswith(f"{made['id']}  cancelled  demo")
    assert pullback("job", "retry", made["id"]).stdout.startswith(f"{made['id']}  queued  demo")
    assert "priority 7" in pullback("job", "priority", made["id"], 7).stdout
    assert json.loads(pullback("job", "priority", "--json", made["id"], "--", "-7").stdout)["priority"] == -7
    listed = json.loads(pullback("job", "list", "--project", "demo", "--state", "queued", "--json").stdout)
    assert [job["id"] for job in listed] == [made["id"]]
    assert "no jobs match" in pullback("job", "list", "--project", "other").stdout
    shown = pullback("job", "show", made["id"])
    assert f"commit     {sha_of(clone)}  three" in shown.stdout
    assert pullback("job", "show", made["id"], "--log").stdout == ""


def test_what_was_done_beside_a_refusal_is_shown_and_unknown_suites_are_refused_here(pullback):
    made = json.loads(pullback("job", "create", "--project", "demo", "--suite", "quick:poly9*", "--json").stdout)
    other = json.loads(pullback("job", "create", "--project", "demo", "--suite", "quick", "--json").stdout)
    partly = pullback("job", "cancel", made["id"], 99, other["id"])
    assert partly.returncode == 2
    assert [line.split()[:2] for line in partly.stdout.splitlines()] == [
        [str(made["id"]), "cancelled"],
        [str(other["id"]), "cancelled"],
    ]
    assert partly.stderr == "pullback: There is no job 99: `pullback job list` lists them.\n"
    for command in ("create", "backfill"):
        refused = pullback("job", command, "--project", "demo", "--suite", "quik")
        assert (refused.returncode, refused.stderr) == (
            2,
            "pullback: no suite 'quik'; known: quick, standard, full, trial\n",
        )


def test_a_log_is_followed_until_its_job_has_ended(pullback, service):
    made = json.loads(pullback("job", "create", "--project", "demo", "--suite", "quick", "--json").stdout)
    agent = httpx.post(f"{service}/api/v1/agents/enroll", json={"name": "a", "machine": MACHINE}).json()["agent_id"]

    def attempt(log, **failure):
        claim = httpx.post(f"{service}/api/v1/agents/{agent}/claim", json={}).json()
        place = f"{service}/api/v1/jobs/{made['id']}/attempts/{claim['attempt']}"
        headers = {"Pullback-Lease": claim["lease_token"]}
        assert httpx.put(f"{place}/log?offset=0", content=log, headers=headers).is_success
        assert httpx.post(f"{place}/fail", json={"lease_token": claim["lease_token"], **failure}).is_success

    def later():
        attempt(b"one\n", kind="infra", message="no room", retryable=True)
        httpx.post(f"{service}/api/v1/jobs/{made['id']}/retry").raise_for_status()  # ends its pause
        attempt("zwölf\n".encode(), kind="build", message="It does not build.")

    timer = threading.Timer(0.5, later)
    timer.start()
    shown = pullback("job", "show", made["id"], "--follow")
    timer.join()
    assert (shown.returncode, shown.stdout) == (1, "one\nzwölf\n"), shown.stderr
    assert shown.stderr.splitlines() == [
        "pullback: attempt 2 began",
        f"pullback: job {made['id']} is failed: It does not build.",
    ]


def test_commits_are_compared_and_forks_are_approved(pullback, clone):
    compared = json.loads(
        pullback(
            "job",
            "create",
            "--project",
            "demo",
            "--against",
            "HEAD~2",
            "--require",
            "device=cpu",
            "--effort",
            2,
            "--json",
        ).stdout
    )
    assert compared["effort"] == 2
    refused = pullback("job", "create", "--project", "demo", "--effort", 2)
    assert (refused.returncode, "--effort is of comparisons" in refused.stderr) == (2, True)
    assert (compared["kind"], compared["reference"]) == ("compare", sha_of(clone, "HEAD~2"))
    assert compared["requires"] == {"device": "cpu"}
    arguments = ["--project", "demo", "--commit", "b" * 40, "--fork", "someone/gradients"]
    made = json.loads(pullback("job", "create", *arguments, "--json").stdout)
    assert (made["trust"], made["awaits_approval"]) == ("untrusted", True)
    assert f"{made['id']}  awaits approval" in pullback("job", "list", "--awaiting-approval").stdout
    assert "approved by no one yet" in pullback("job", "show", made["id"]).stdout
    assert f"{made['id']}  queued" in pullback("job", "approve", made["id"]).stdout
    assert pullback("job", "list", "--awaiting-approval", "--json").stdout.strip() == "[]"


def test_the_commits_of_a_branch_are_filled_in(pullback, clone):
    assert pullback("log", "--project", "demo").returncode == 0
    told = pullback("job", "backfill", "--project", "demo", "--dry-run", "--limit", "2")
    first, *commits = told.stdout.splitlines()
    assert first == "3 of 3 commits have no results of standard"
    assert [line.split()[:2] for line in commits] == [
        [sha_of(clone)[:10], "three"],
        [sha_of(clone, "HEAD~1")[:10], "two"],
    ]
    assert all(line.endswith("would get a job") for line in commits)
    made = json.loads(pullback("job", "backfill", "--project", "demo", "--order", "bisect", "--json").stdout)
    assert [job["commit"] for job in made["jobs"]] == [sha_of(clone, f"HEAD~{age}") for age in (0, 2, 1)]
    again = pullback("job", "backfill", "--project", "demo").stdout
    assert again.splitlines() == ["0 of 3 commits have no results of standard, 3 jobs under way"]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["job", "show", "77"], "There is no job 77"),
        (["job", "show", "77", "--follow"], "There is no job 77"),
        (["job", "retry", "77"], "There is no job 77"),
        (["job", "create", "--project", "demo", "--commit", "nowhere"], "name a branch or commit this clone has"),
        (["job", "create", "--project", "demo", "--require", "cpu"], "name=value"),
        (["job", "backfill", "--project", "nowhere"], "no project 'nowhere'"),
        (["job", "list", "--server", "nowhere"], "is not an address"),
        (["job", "list", "--token-file", "nothing"], "cannot be read"),
    ],
)
def test_what_does_not_hold_is_one_sentence(pullback, arguments, said):
    shown = pullback(*arguments)
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1), shown.stderr
    assert said in shown.stderr


def test_ids_complete_with_what_they_are_and_silently_without_a_service(pullback, service, clone):
    made = [
        json.loads(pullback("job", "create", "--project", "demo", "--suite", s, "--json").stdout)["id"]
        for s in ("quick", "full")
    ]
    pullback("job", "cancel", made[0])
    (only,) = ids_that("cancelled")("")
    assert only == (str(made[0]), f"cancelled demo {sha_of(clone)[:10]} quick")
    assert [found for found, _ in ids_that()("")] == [str(made[1]), str(made[0])]
    assert ids_that()("9") == []
    pullback("job", "list", server="http://127.0.0.1:1")
    assert ids_that()("") == []


def test_a_shell_is_offered_states(tmp_path):
    environment = {
        **os.environ,
        "_PULLBACK_COMPLETE": "complete_bash",
        "COMP_WORDS": "pullback job list --state ",
        "COMP_CWORD": "4",
    }
    shown = subprocess.run(
        [sys.executable, "-c", "from pullback_cli.main import app; app(prog_name='pullback')"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert {"queued", "lost"} <= set(shown.stdout.split()), shown.stderr


def test_values_are_rebuilt_and_policies_set(pullback, service):
    assert pullback("project", "create", "demo").returncode == 0
    changed = json.loads(
        pullback(
            "project", "set", "demo", "--raw-days", 180, "--body-days", 365, "--backfill", "quick", "--json"
        ).stdout
    )
    assert (changed["raw_days"], changed["body_days"], changed["backfill"]["suite"]) == (180, 365, "quick")
    back = json.loads(pullback("project", "set", "demo", "--raw-days", 0, "--backfill", "", "--json").stdout)
    assert (back["raw_days"], back["body_days"], back["backfill"]) == (None, 365, None)
    nothing = {"looked_at": 0, "changed": 0}
    rebuilt = {"values": nothing, "readings": nothing, "steps": nothing, "dry_run": False}
    assert json.loads(pullback("db", "rebuild", "--json").stdout) == rebuilt
    assert json.loads(pullback("db", "recompute", "--json").stdout) == rebuilt  # its name before, for one release
    assert "0 would change" in pullback("db", "rebuild", "--dry-run").stdout
