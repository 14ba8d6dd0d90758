"""`pullback channel` against a service that listens, with a worker beside it and a receiver of webhooks."""

import asyncio
import io
import json
import subprocess
import sys
import threading
from ipaddress import ip_network

import psycopg
import pytest
from tests.service.notifications.doubles import Hooks
from typer.testing import CliRunner

from pullback_cli.main import app, main
from pullback_service import worker
from pullback_service.notifications.transport import DeliverySettings

OUTSIDE = DeliverySettings(networks=(ip_network("127.0.0.0/8"),))
URL = "https://hooks.example/T0/secret-part"


@pytest.fixture
def pullback(service, tmp_path, monkeypatch, capfd):
    """Run the command in this process."""

    def run(*arguments, server=service, stdin=""):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setenv("PULLBACK_SERVER", server)
        monkeypatch.setattr(sys, "argv", ["pullback", "channel", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return subprocess.CompletedProcess(arguments, ended.value.code, *capfd.readouterr())

    return run


@pytest.fixture
def execute(database_url):
    """Run a statement as the owner of the database."""

    def execute(statement, *values):
        with psycopg.connect(database_url, autocommit=True) as connection:
            return connection.execute(statement, values)

    execute("INSERT INTO project (name) VALUES ('demo'), ('other')")
    return execute


@pytest.fixture
def worker_beside(database_url):
    """A worker that sends what waits, until the test is over."""
    over = threading.Event()

    def work():
        while not over.is_set():
            asyncio.run(worker.run_once(database_url, outside=OUTSIDE))
            over.wait(0.1)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.parametrize("command", ["add", "list", "show", "test", "remove"])
def test_every_command_shows_how_it_is_used(command):
    shown = CliRunner().invoke(app, ["channel", command, "--help"])
    assert shown.exit_code == 0
    assert f"pullback channel {command}" in shown.stdout


def test_a_channel_is_added_listed_and_removed(pullback, execute):
    assert pullback("list").stdout.startswith("there are no channels")
    made = pullback("add", "team", "--project", "demo", "--webhook", URL)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("plb_hook_")
    assert made.stdout.count("\n") == 1  # the key and nothing else, so that it can be written into a file
    chat = pullback(
        "add", "chat", "--project", "demo", "--slack", "-", "--event", "resolved", "--json", stdin=f"{URL}\n"
    )
    assert (json.loads(chat.stdout)["events"], json.loads(chat.stdout)["secret"]) == (["resolved"], None)
    mail = pullback("add", "list", "--project", "other", "--email", "a@b.co", "--email", "c@d.co")
    assert "pullback channel test 3" in mail.stdout
    listed = pullback("list", "--project", "demo", "--json")
    assert [each["name"] for each in json.loads(listed.stdout)] == ["team", "chat"]
    lines = pullback("list").stdout
    assert "1  demo  team  webhook  https://hooks.example/…  [usual events]  on  nothing sent yet" in lines
    assert "3  other  list  email  a@b.co c@d.co" in lines
    assert "secret-part" not in lines + listed.stdout + chat.stdout
    assert made.stdout.strip() not in lines + listed.stdout
    assert execute("SELECT target, kind FROM channel WHERE name = 'chat'").fetchone() == (URL, "slack")
    assert pullback("remove", "team").stdout == "channel team of demo is removed\n"
    assert [each["id"] for each in json.loads(pullback("list", "--json").stdout)] == [2, 3]


def test_a_test_says_whether_it_arrived(pullback, execute, worker_beside):
    hooks = Hooks()
    try:
        pullback("add", "team", "--project", "demo", "--webhook", URL)
        execute("UPDATE channel SET target = %s", hooks.url())
        arrived = pullback("test", "team")
        assert (arrived.returncode, arrived.stdout) == (0, "arrived: 200 OK\n")
        hooks.answers = [500]
        failed = pullback("test", 1, "--json")
        assert (failed.returncode, json.loads(failed.stdout)["state"]) == (1, "failed")
        assert failed.stderr == "pullback: the test did not arrive: 500 Internal Server Error: ok\n"
    finally:
        hooks.close()
    shown = pullback("show", "team").stdout.splitlines()
    assert [line.split()[2] for line in shown[1:]] == ["failed", "sent"]
    assert "Test of channel team" in shown[1]
    assert len(json.loads(pullback("show", "team", "--json").stdout)) == 2


def test_a_channel_that_is_off_says_why(pullback, execute):
    pullback("add", "team", "--project", "demo", "--webhook", URL)
    execute(
        "UPDATE channel SET failing_since = '2026-01-01', switched_off_at = '2026-01-02', switched_off_because = '500 no'"
    )
    assert "off since 2026-01-02 00:00: 500 no" in pullback("list").stdout
    execute("UPDATE channel SET switched_off_at = NULL")
    assert "failing since 2026-01-01 00:00" in pullback("list").stdout


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "x", "--project", "demo"], "one of --webhook, --slack and --email"),
        (["add", "x", "--project", "demo", "--webhook", URL, "--slack", URL], "one of --webhook"),
        (["add", "x", "--project", "nowhere", "--webhook", URL], "no project 'nowhere'"),
        (["add", "x", "--project", "demo", "--webhook", "https://10.0.0.1/a"], "leads to a private address"),
        (["add", "x", "--project", "demo", "--webhook", "ftp://hooks.example"], "no https address"),
        (["add", "x", "--project", "demo", "--webhook", URL, "--event", "rain"], "--event: Give 'confirmed', "),
        (["add", "twice", "--project", "demo", "--webhook", URL], "'twice' already"),
        (["add", "x", "--project", "demo", "--email", "nobody"], "to[0]"),
        (["remove", "nothing"], "no channel 'nothing': `pullback channel list` shows them"),
        (["test", "twice"], "several projects have a channel 'twice' (demo, other): say --project, or its id"),
    ],
)
def test_what_does_not_hold_is_one_sentence(pullback, execute, arguments, said):
    for project in ("demo", "other"):
        assert pullback("add", "twice", "--project", project, "--webhook", URL).returncode == 0
    shown = pullback(*arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith("pullback: ")
    assert shown.stderr.count("\n") == 1
    assert said in shown.stderr
    assert "secret-part" not in shown.stderr


@pytest.mark.usefixtures("execute")
def test_a_message_that_no_worker_sends_is_one_that_did_not_arrive(pullback):
    assert pullback("add", "team", "--project", "demo", "--webhook", URL).returncode == 0
    shown = pullback("test", "team", "--wait", "0")
    assert (shown.returncode, shown.stdout, shown.stderr.count("\n")) == (1, "", 1)
    assert "is a `pullback worker` running?" in shown.stderr
