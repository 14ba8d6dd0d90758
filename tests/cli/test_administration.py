"""`pullback token`, `project` and `db` on a real database: what they print, what they store, what they refuse."""

import json
import os
import subprocess
import sys

import psycopg
import pytest
from typer.testing import CliRunner

from pullback_cli.main import app, main
from pullback_service import migrations
from pullback_service.backups import back_up, restore
from pullback_service.database_checks import check
from pullback_service.errors import SetupError


def as_a_process(*arguments, folder, environment):
    """Run the command as a shell does, which costs a second of imports."""
    command = [sys.executable, "-P", "-m", "pullback_cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=folder, env=environment)


@pytest.fixture
def pullback(database_url, tmp_path, monkeypatch, capfd):
    """Run the command on this test's database, in this process."""

    def run(*arguments, url=database_url):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DATABASE_URL", url)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(sys, "argv", ["pullback", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return subprocess.CompletedProcess(arguments, ended.value.code, *capfd.readouterr())

    return run


@pytest.mark.parametrize(
    ("group", "commands"),
    [
        ("token", ["create", "list", "revoke", "enroll"]),
        ("project", ["create", "list", "set"]),
        ("db", ["backup", "restore", "upgrade", "check", "rebuild", "detect"]),
    ],
)
def test_every_command_shows_how_it_is_used(group, commands):
    for command in commands:
        shown = CliRunner().invoke(app, [group, command, "--help"])
        assert shown.exit_code == 0
        assert "Examples" in shown.stdout
        assert f"pullback {group} {command}" in shown.stdout


@pytest.mark.long
def test_a_token_made_by_one_process_is_seen_by_another(database_url, tmp_path):
    environment = {**os.environ, "DATABASE_URL": database_url, "COLUMNS": "200"}
    made = as_a_process("token", "create", "ci", "--scope", "read", folder=tmp_path, environment=environment)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("plb_")
    again = as_a_process("token", "create", "ci", "--scope", "read", folder=tmp_path, environment=environment)
    assert (again.returncode, again.stdout, again.stderr.count("\n")) == (2, "", 1)
    assert again.stderr.startswith("pullback: ")


def test_a_token_is_made_listed_and_revoked(pullback):
    assert pullback("project", "create", "demo").returncode == 0
    made = pullback("token", "create", "ci", "--scope", "upload", "--project", "demo", "--expires-in-days", "30")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("plb_")
    assert made.stdout.count("\n") == 1  # the token and nothing else, so that it can be written into a file
    again = pullback("token", "create", "ci", "--scope", "read")
    assert (again.returncode, "already" in again.stderr) == (2, True)
    (listed,) = json.loads(pullback("token", "list", "--json").stdout)
    assert (listed["name"], listed["scopes"], listed["project"]) == ("ci", ["upload"], "demo")
    assert made.stdout.strip() not in json.dumps(listed)
    assert "until" in pullback("token", "list").stdout
    assert pullback("token", "revoke", "ci").returncode == 0
    assert "revoked" in pullback("token", "list").stdout
    gone = pullback("token", "revoke", "ci")
    assert (gone.returncode, "pullback token list" in gone.stderr) == (2, True)


def test_projects_are_made_listed_and_opened(pullback, database_url):
    assert json.loads(pullback("project", "create", "demo", "--json").stdout)["public_read"] is False
    assert json.loads(pullback("project", "set", "demo", "--public", "--json").stdout)["public_read"] is True
    set_to = ("project", "set", "demo", "--json", "--repository")
    assert (
        json.loads(pullback(*set_to, "git@git.example:demo.git").stdout)["repository"] == "ssh://git@git.example/demo"
    )
    assert json.loads(pullback(*set_to, "").stdout)["repository"] is None
    assert "demo  public" in pullback("project", "list").stdout
    with psycopg.connect(database_url) as connection:
        lines = connection.execute("SELECT actor, action, subject FROM audit ORDER BY id").fetchall()
    assert lines == [
        ("command line", "project create", "project demo"),
        *[("command line", "project set", "project demo")] * 3,
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["token", "create", "x", "--scope", "everything"], "not one of read, upload, agent, admin"),
        (["token", "create", "x", "--scope", "read", "--project", "nowhere"], "`pullback project create nowhere`"),
        (["project", "create", "a/../b"], "must not have . or .. between its slashes"),
        (["token", "create", " x", "--scope", "read"], "' x' is not a valid name: A name must be one line"),
        (
            ["token", "create", "x\u200by", "--scope", "read"],
            "is not a valid name: The name has U+200B (ZERO WIDTH SPACE)",
        ),
        (["project", "set", "nowhere", "--public"], "no project 'nowhere'"),
        (["project", "set", "nowhere"], "--public or --private"),
        (
            ["project", "set", "nowhere", "--backfill", "nightly:poly9*"],
            "no suite 'nightly'; known: quick, standard, full",
        ),
        (["project", "set", "x", "--repository", "https://me:secret@git.example/x"], "password or token"),
        (["project", "set", "x", "--repository", "/srv/x.git"], "no https or ssh address"),
        (["db", "restore", "nothing.backup"], "no file nothing.backup"),
        (["db", "backup", "no/such/folder/file"], "no/such/folder/file cannot be written"),
    ],
)
def test_what_does_not_hold_is_one_sentence(pullback, arguments, said):
    shown = pullback(*arguments)
    assert shown.returncode == 2, shown.stdout
    assert shown.stderr.startswith("pullback: ")
    assert shown.stderr.count("\n") == 1
    assert said in shown.stderr


def test_without_a_database_the_remedy_is_said(tmp_path):
    shown = as_a_process("token", "list", folder=tmp_path, environment={"PATH": os.environ["PATH"]})
    assert shown.returncode == 2
    assert "DATABASE_URL is not set" in shown.stderr
    assert "pullback up" in shown.stderr


def test_an_old_database_is_upgraded_before_it_is_worked_on(pullback, bare_database_url):
    refused = pullback("token", "list", url=bare_database_url)
    assert (refused.returncode, "pullback db upgrade" in refused.stderr) == (2, True)
    wrong = pullback("db", "check", "--json", url=bare_database_url)
    assert wrong.returncode == 1
    assert "pullback db upgrade" in json.loads(wrong.stdout)["findings"][0]
    assert json.loads(pullback("db", "upgrade", "--json", url=bare_database_url).stdout)["was"] is None
    assert pullback("db", "check", url=bare_database_url).stdout.strip() == "no problems found"


def test_a_backup_brings_everything_back(pullback, bare_database_url, tmp_path):
    pullback("project", "create", "demo")
    file = tmp_path / "all.backup"
    made = pullback("db", "backup", str(file), "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["bytes"] == file.stat().st_size
    assert file.stat().st_mode & 0o077 == 0
    assert not list(tmp_path.glob("*.partial"))
    assert "exists already" in pullback("db", "backup", str(file)).stderr
    restored = pullback("db", "restore", str(file), url=bare_database_url)
    assert restored.returncode == 0, restored.stderr
    assert "demo" in pullback("project", "list", url=bare_database_url).stdout
    assert check(bare_database_url) == []
    assert "--replace" in pullback("db", "restore", str(file), url=bare_database_url).stderr
    pullback("project", "create", "later", url=bare_database_url)
    assert pullback("db", "restore", str(file), "--replace", url=bare_database_url).returncode == 0
    assert "later" not in pullback("project", "list", url=bare_database_url).stdout


def test_a_damaged_backup_changes_nothing(database_url, bare_database_url, tmp_path):
    file = tmp_path / "all.backup"
    back_up(database_url, file)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(SetupError):
        restore(bare_database_url, file)
    with psycopg.connect(bare_database_url) as connection:
        assert connection.execute("SELECT to_regclass('project')").fetchone() == (None,)


def test_the_check_finds_what_no_constraint_can_say(database_url):
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE project ADD COLUMN by_hand int")
        connection.execute("INSERT INTO project (name) VALUES ('p')")
        connection.execute("INSERT INTO machine (fingerprint, name) VALUES ('f', 'm')")
        connection.execute("INSERT INTO commit (project_id, sha) VALUES (1, repeat('a', 40))")
        connection.execute(
            "INSERT INTO report (id, project_id, commit_id, machine_id, idempotency_key, digest, body, body_bytes, "
            "format, version, quality, dirty, cases, points, failures, started_at, received_at) VALUES "
            "(gen_random_uuid(), 1, 1, 1, 'k', '', '', 0, 'f', 1, 'clean', false, 1, 3, 0, now(), "
            "now() - interval '2 hours')"
        )
    findings = " ".join(check(database_url))
    assert "by_hand" in findings
    assert "1 reports have lost or gained points" in findings
    assert "pullback worker" in findings


def test_what_is_no_backup_is_refused_with_the_remedy(bare_database_url, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("no backup")
    with pytest.raises(
        SetupError, match=r"notes\.txt is not a backup \(.*\): name a file written by `pullback db backup`\.$"
    ):
        restore(bare_database_url, file)


def test_older_servers_are_refused(bare_database_url, tmp_path, monkeypatch):
    monkeypatch.setattr(migrations, "OLDEST_POSTGRES", 99)
    for act in (lambda: back_up(bare_database_url, tmp_path / "a"), lambda: migrations.upgrade(bare_database_url)):
        with pytest.raises(SetupError, match="is Postgres 18, and Pullback needs 99 or later"):
            act()
    assert list(tmp_path.iterdir()) == []
