"""The service that a command speaks to."""

import os

import pytest
import stamina
from typer.testing import CliRunner

from pullback_cli.main import app
from pullback_cli.server_option import DEFAULT_SERVER, server_of_folder
from pullback_cli.services import address_of, client_of
from pullback_cli.supervision.state_file import UpState, only_up_on, write_state
from pullback_cli.usage_errors import RefusalError
from pullback_runners.agent.process_mark import ProcessMark
from pullback_service.client import NoAnswerError


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000", "https://[::1]:1/under", "http://b\u00fccher.example"])
def test_an_address_is_taken_as_it_is(address):
    assert address_of(address) == address


@pytest.mark.parametrize(
    "address", ["nowhere", "ftp://x", "http://", "http://[::1", "http://127.0.0.1:99999", "http://x y", "http://x:y"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(RefusalError, match="is not an address like"):
        address_of(address)


@pytest.mark.parametrize(
    "address",
    ["http://me:secret@x", "http://secret@x:1/", "http://x?token=secret", "http://x#secret", "me:secret@x", "secret@["],
)
@pytest.mark.parametrize("arguments", [["agent"], ["upload", "report.json"], ["job", "list"], ["export", "series"]])
def test_an_address_with_a_secret_is_refused_and_not_repeated(command, arguments, address):
    for done in (command(*arguments, PULLBACK_SERVER=address), command(*arguments, "--server", address)):
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert "has a user name, a password, a query or a fragment" in line
        assert "secret" not in done.stdout + done.stderr


def test_who_waits_is_told_that_nobody_answers(capsys):
    with (
        stamina.set_testing(True, attempts=2),
        client_of("http://127.0.0.1:1", None, attempts=2) as client,
        pytest.raises(NoAnswerError),
    ):
        client.list_projects()
    said = capsys.readouterr().err
    assert said.count("asking again in") == 1
    assert "stamina" not in said


@pytest.mark.parametrize("named", [(), ("--server", "http://127.0.0.1:2")])
def test_where_no_service_is_named_it_is_the_up_of_this_folder(tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PULLBACK_SERVER", raising=False)
    with only_up_on(tmp_path / ".pullback"):
        mark = ProcessMark.of(os.getpid())
        write_state(tmp_path / ".pullback", UpState(mark, "http://127.0.0.1:1", embedded_postgres=True))
        with pytest.raises(RefusalError, match=f"127.0.0.1:{2 if named else 1}[^0-9]"):
            CliRunner().invoke(app, ["job", "list", *named], catch_exceptions=False)
        assert server_of_folder() == "http://127.0.0.1:1"
    assert server_of_folder() == DEFAULT_SERVER  # `up.json` of one that has ended


def test_comparisons_say_the_tiers_that_they_take():
    for name, said in (("run", "all tiers"), ("compare", "unfused and native"), ("bisect", "unfused and native")):
        shown = " ".join(CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "300"}).stdout.split())
        assert f"and for a NumPy form {said}" in shown
