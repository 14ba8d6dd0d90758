"""Every command's exit statuses: in its help, in the documents, and as it ends."""

import json
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import stamina
from typer.main import get_command

from pullback_cli.checking.verdict import NOT_ENOUGH_DATA, STATUSES
from pullback_cli.exit_statuses import MEANINGS
from pullback_cli.main import app

DOCUMENT = Path(__file__).parents[2] / "docs" / "exit-statuses.md"
HISTORY = Path(__file__).parents[1] / "data" / "importers" / "github-action-benchmark" / "data.js"
SHA = "3f2a91c0" * 5
NOWHERE = "http://127.0.0.1:1"
WAITS = "agent"  # for a service that is away, until it is told to stop


def _walk(command, path=""):
    """Commands and groups of the parser by the words that call them."""
    for name, each in getattr(command, "commands", {}).items():
        yield f"{path}{name}", each
        yield from _walk(each, f"{path}{name} ")


ALL = dict(_walk(get_command(app)))
COMMANDS = {name: each for name, each in ALL.items() if not hasattr(each, "commands")}


def _without_a_row(parsed, table):
    return [
        f"`pullback {name}` has no exit statuses: add a row to MEANINGS in cli/pullback_cli/exit_statuses.py"
        for name in parsed
        if not table.get(name)
    ]


def test_every_command_has_a_row_of_exit_statuses_and_none_is_of_a_command_that_is_gone():
    assert _without_a_row(COMMANDS, MEANINGS) == []
    assert [name for name in MEANINGS if name not in COMMANDS] == []
    (sentence,) = _without_a_row(COMMANDS, {**MEANINGS, "up": {}})
    assert sentence.startswith("`pullback up` has no exit statuses")


@pytest.mark.parametrize("name", ALL)
def test_every_help_has_its_exit_statuses_before_its_examples(name):
    head, _, examples = (ALL[name].help or "").partition("\nExample")
    assert "\nExit status" in head
    assert "Exit status" not in examples
    for status, meaning in MEANINGS.get(name, {}).items():
        assert f"\n{status}  {meaning}\n" in head + "\n"


def test_the_statuses_of_a_check_are_those_of_its_verdicts():
    assert {str(status) for status in STATUSES.values()} | {str(NOT_ENOUGH_DATA)} <= set(MEANINGS["check"])


def test_the_document_lists_the_statuses_of_every_command():
    rows: dict[tuple[str, str], list[str]] = {}
    for name, meanings in MEANINGS.items():
        if not COMMANDS[name].hidden:
            for status, meaning in meanings.items():
                rows.setdefault((status, meaning), []).append(f"`{name}`")
    ordered = sorted(rows.items(), key=lambda row: int(row[0][0].split(",")[0]))
    table = "\n".join(f"| {status} | {meaning} | {', '.join(names)} |" for (status, meaning), names in ordered)
    assert table in DOCUMENT.read_text(encoding="utf-8"), f"{DOCUMENT} needs this table:\n{table}"


REQUIRED = {
    "upload": ["file.json", "--project", "demo", "--machine", "ci", "--commit", SHA, "--branch", "main"],
    "check": ["--project", "demo", "--head", SHA, "--base", SHA, "--wait", "0"],
    "import": ["data.js", "--project", "demo", "--machine", "ci"],
    "export": ["projects"],
    "log": ["--project", "demo"],
    "job show": ["1"],
    "job create": ["--project", "demo", "--commit", SHA],
    "job cancel": ["1"],
    "job retry": ["1"],
    "job approve": ["1"],
    "job priority": ["1", "5"],
    "job backfill": ["--project", "demo"],
    "incident show": ["1"],
    "incident verdict": ["1", "noise"],
    "incident assign": ["1", "ada"],
    "incident confirm": ["1"],
    "incident bisect": ["1"],
    "rules": ["--show", "--project", "demo"],
    "report withdraw": ["0f8fad5b-d9cb-469f-a165-70867728950e"],
    "channel add": ["team", "--project", "demo", "--email", "bench@example.org"],
    "channel show": ["team"],
    "channel test": ["team"],
    "channel remove": ["team"],
}
TO_A_SERVICE = [name for name, each in COMMANDS.items() if any(option.name == "server" for option in each.params)]


@pytest.fixture
def clone(tmp_path):
    """A repository with one commit, a report of hyperfine, and a history of github-action-benchmark."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q", "-b", "main"], [*identity, "commit", "-q", "--allow-empty", "-m", "First"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    (tmp_path / "file.json").write_text(json.dumps({"results": [{"command": "c", "mean": 1.0, "times": [1.0]}]}))
    shutil.copy(HISTORY, tmp_path)
    return tmp_path


class _OutOfOrder(BaseHTTPRequestHandler):
    """A proxy whose service does not answer."""

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names of the standard library

    def log_message(self, *_):
        """Write no log."""


@pytest.fixture(scope="module")
def out_of_order():
    """Address of a proxy that answers 503."""
    with HTTPServer(("127.0.0.1", 0), _OutOfOrder) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_every_command_that_asks_a_service_lists_its_absence():
    assert [name for name in TO_A_SERVICE if name != WAITS and "75" not in MEANINGS[name]] == []
    assert [name for name, meanings in MEANINGS.items() if "75" in meanings and name not in TO_A_SERVICE] == []


def _ended(command, name, server, clone):
    """The sentence with which a command ends whose service is away, and which must be the only one."""
    with stamina.set_testing(True, attempts=1):
        done = command(*name.split(), *REQUIRED.get(name, ()), "--server", server, folder=clone)
    assert done.returncode == 75, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("pullback: ")
    return line


@pytest.mark.parametrize("name", [name for name in TO_A_SERVICE if name != WAITS])
def test_a_service_that_cannot_be_reached_is_status_75_and_one_sentence(command, clone, name):
    sentence = _ended(command, name, NOWHERE, clone)
    assert "does not answer" in sentence
    assert "check --server" in sentence


@pytest.mark.parametrize("name", [name for name in TO_A_SERVICE if name != WAITS])
def test_a_service_that_is_out_of_order_is_status_75_and_one_sentence(command, clone, name, out_of_order):
    sentence = _ended(command, name, out_of_order, clone)
    assert f"{out_of_order} " in sentence
    assert " answered 503 " in sentence
    assert "check --server" in sentence
