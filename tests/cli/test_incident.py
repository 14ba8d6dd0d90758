"""`pullback incident`, against a service that listens."""

import asyncio
import json
import subprocess
import sys

import httpx
import psycopg
import pytest
from tests.service.conftest import make_case, make_report, make_variant
from typer.testing import CliRunner

from pullback_cli.main import app, main
from pullback_service import worker


@pytest.fixture
def pullback(service, monkeypatch, capfd):
    """Run the command in this process."""

    def run(*arguments):
        monkeypatch.setenv("PULLBACK_SERVER", service)
        monkeypatch.setattr(sys, "argv", ["pullback", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return subprocess.CompletedProcess(arguments, ended.value.code, *capfd.readouterr())

    return run


@pytest.fixture
def grown(service, database_url):
    """A project whose second commit allocates twice as much, as the third one does."""
    for number in (1, 2, 3):
        variants = [make_variant("unfused"), make_variant("fused", array_bytes=1024.0 * min(number, 2))]
        report = make_report(number, cases=[make_case("lstm", variants=variants)])
        assert httpx.post(f"{service}/api/v1/reports", json=report).status_code == 201
    with psycopg.connect(database_url, autocommit=True) as connection:
        while connection.execute("SELECT count(*) FROM report WHERE detected_at IS NULL").fetchone()[0]:
            asyncio.run(worker.run_once(database_url))


@pytest.mark.parametrize("command", ["list", "show", "verdict", "assign", "confirm", "bisect"])
def test_every_command_shows_how_it_is_used_and_how_it_ends(command):
    shown = CliRunner().invoke(app, ["incident", command, "--help"])
    assert shown.exit_code == 0
    assert f"pullback incident {command}" in shown.stdout
    assert "Exit status" in shown.stdout
    assert "--json" in shown.stdout


def test_incidents_are_listed_shown_and_judged(pullback, grown):
    listed = pullback("incident", "list", "--project", "demo", "--state", "confirmed")
    assert listed.returncode == 0
    assert (
        "1  confirmed  demo  `fused` of `lstm` uses 2× the memory (array bytes: 1 KiB, then 2 KiB) since"
        in listed.stdout
    )
    shown = pullback("incident", "show", 1)
    assert (
        "claimed    lstm[n=100,act=tanh,f4,cpu] fused array_bytes on box: counted, 1024 B, then 2048 B" in shown.stdout
    )
    assert "  last without  0000" in shown.stdout
    assert "  first with    0000" in shown.stdout
    assert "confirmed, announced" in shown.stdout
    assert "pullback compare --against 0000000000 --candidate" in shown.stdout
    judged = pullback("incident", "verdict", 1, "expected", "--note", "two gates", "--json")
    said = json.loads(judged.stdout)
    assert (said["state"], said["verdict"]["note"]) == ("resolved", "two gates")
    assert json.loads(pullback("incident", "list", "--state", "confirmed", "--json").stdout) == []
    assert "1  confirmed  demo" in pullback("incident", "verdict", 1, "none").stdout
    assert pullback("incident", "assign", 1, "ada").stdout.startswith("1  confirmed  ada  demo")
    assert [each["id"] for each in json.loads(pullback("incident", "list", "--assignee", "ada", "--json").stdout)] == [
        1
    ]
    assert json.loads(pullback("incident", "list", "--assignee", "bob", "--json").stdout) == []
    assert json.loads(pullback("incident", "assign", 1, "--none", "--json").stdout)["assignee"] is None
    for command, said in (("bisect", "begins at one commit"), ("confirm", "cannot be measured in turns")):
        refused = pullback("incident", command, 1)
        assert (refused.returncode, said in refused.stderr) == (2, True)


AS_OF_AN_OLDER_VERSION = """
INSERT INTO change (project_id, incident_id, case_id, machine_id, series_id, variant, kind, worse, evidence, standing, reference_id,
                    commit_id, log_ratio, detector)
SELECT change.project_id, incident_id, change.case_id, change.machine_id, series.id, series.variant, kind, worse, 'levels', 'borne_out',
       reference_id, commit_id, 0.1, 'levels 0'
  FROM change
  JOIN series ON series.case_id = change.case_id AND series.metric = 'time' AND series.variant = 'fused'
"""


def test_findings_of_another_detector_are_listed_beside_those_of_this_release(
    pullback, grown, database_url, monkeypatch
):
    monkeypatch.setenv("DATABASE_URL", database_url)
    same = pullback("db", "detect", "--project", "demo")
    assert (same.returncode, same.stdout) == (0, "no differences from what is stored\n")
    assert same.stderr == "demo: 2 series, 6 readings\n"
    with psycopg.connect(database_url) as connection:
        connection.execute(AS_OF_AN_OLDER_VERSION)
    gone = pullback("db", "detect")
    assert gone.returncode == 1
    assert gone.stdout.startswith("- demo  lstm[n=100,act=tanh,f4,cpu] fused time on box: +10.5% at 0000")
    (said,) = json.loads(pullback("db", "detect", "--json").stdout)
    assert (said["kind"], said["detector"], said["was"]) == ("gone", "levels 0", None)
    refused = pullback("db", "detect", "--project", "nothing")
    assert (refused.returncode, "nothing" in refused.stderr) == (2, True)


def test_what_is_not_there_is_one_sentence(pullback):
    missing = pullback("incident", "show", 9)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.strip().endswith("There is no incident 9: `pullback incident list` lists them.")
    nothing = pullback("incident", "list")
    assert nothing.stdout.startswith("there are no such incidents")
    assert pullback("incident", "verdict", 1, "wrong").returncode == 2
    assert pullback("incident", "assign", 1).stderr.endswith("give a person, or --none to remove the assignee\n")
    refused = pullback("incident", "list", "--state", "open")
    assert (refused.returncode, "query" in refused.stderr, "--state" in refused.stderr) == (2, False, True)
    refused = pullback("incident", "list", "--since", "yesterday")
    assert refused.returncode == 2
    assert "--since" in refused.stderr
