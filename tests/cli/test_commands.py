import os
import socket
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from pullback_cli.main import app

COMMANDS = sorted(get_command(app).commands)


def _pullback(*arguments, **options):
    command = [sys.executable, "-P", "-m", "pullback_cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_how_it_is_used(name):
    shown = CliRunner().invoke(app, [name, "--help"])
    assert shown.exit_code == 0
    assert "Example" in shown.stdout
    assert f"pullback {name}" in shown.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_option_is_a_usage_error(name):
    assert CliRunner().invoke(app, [name, "--no-such-option"]).exit_code == 2


def test_usage_is_shown_and_a_wrong_one_refused_by_the_process_too():
    assert _pullback("version", "--help").returncode == 0
    assert _pullback("version", "--no-such-option").returncode == 2


def test_looking_at_the_commands_loads_no_part_of_the_product():
    program = (
        "import sys, pullback_cli.main\n"
        "heavy = {'numpy', 'fastapi', 'sqlalchemy', 'uvicorn', 'httpx', 'psycopg', 'psutil', 'pullback'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_release_is_one_line():
    shown = _pullback("--version")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"pullback {version('pullback')}\n", "")
    assert "--version" in CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "part", ["pullback_service.worker", "pullback_service.migrations", "pullback_runners.agent.daemon"]
)
def test_who_answers_no_requests_does_not_load_what_answers_them(part):
    program = f"import sys, {part}; print(sorted({{'fastapi', 'starlette', 'uvicorn'}} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("command", "missing", "extra"),
    [
        (["serve"], "uvicorn", "service"),
        (["migrate"], "alembic", "service"),
        (["up"], "psutil", "service,runner"),
        (["down"], "psutil", "service"),
        (["status"], "psutil", "service"),
        (["agent", "--server", "http://127.0.0.1:1"], "stamina", "runner"),
    ],
)
def test_a_missing_package_is_one_sentence_with_the_remedy(tmp_path, command, missing, extra):
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.modules[{missing!r}] = None\n")
    shown = subprocess.run(
        [sys.executable, "-m", "pullback_cli", *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(tmp_path),
            "DATABASE_URL": "postgresql://nobody@127.0.0.1/none",
        },
        timeout=60,
    )
    assert shown.returncode == 2
    assert shown.stderr.count("\n") == 1
    assert missing in shown.stderr
    assert f"pip install 'pullback[{extra}]'" in shown.stderr


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["agent", "--server", "127.0.0.1:1"], "http://127.0.0.1:8000"),
        (["agent", "--server", "http://127.0.0.1:1", "--label", "gpu"], "name=value"),
        (["agent", "--server", "http://127.0.0.1:1", "--token-file", "/no/such/file"], "/no/such/file"),
        (["migrate"], "DATABASE_URL"),
        (["serve", "--host", "0.0.0.0"], "PULLBACK_AUTH=token"),  # noqa: S104 - the point is that it is refused
    ],
)
def test_a_wrong_environment_is_one_sentence(tmp_path, arguments, said):
    shown = _pullback(*arguments, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})
    assert shown.returncode == 2
    assert shown.stderr.startswith("pullback: ")
    assert shown.stderr.count("\n") == 1
    assert said in shown.stderr


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("command", "address"),
    [
        (["migrate"], "garbage"),
        (["migrate"], "postgresql://u@127.0.0.1:port/name"),
        (["migrate"], "mysql://u@127.0.0.1/name"),
        (["serve", "--port", "0"], "garbage"),
        (["serve", "--port", "0"], "mysql://u@127.0.0.1/name"),
        (["worker"], "postgresql://u@127.0.0.1:port/name"),
        (["up", "--no-agent", "--port", "0"], "mysql://u@127.0.0.1/name"),
    ],
)
def test_an_address_that_is_none_of_postgres_is_one_sentence(tmp_path, command, address):
    shown = _pullback(*command, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "DATABASE_URL": address})
    assert shown.returncode == 2, shown.stderr
    assert shown.stderr.startswith("pullback: DATABASE_URL ")
    assert shown.stderr.count("\n") == 1


_LOOKED = (
    "import sys\n"
    "from pullback_cli.main import main\n"
    "sys.argv[0] = 'pullback'\n"
    "try:\n"
    "    main()\n"
    "finally:\n"
    "    heavy = {'sqlalchemy', 'fastapi', 'uvicorn', 'alembic', 'procrastinate', 'structlog', 'psycopg', 'numpy'}\n"
    "    print(sorted(heavy & set(sys.modules)))"
)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("command", "variable", "value"),
    [
        (["serve", "--port", "0"], "DATABASE_URL", "mysql://u@127.0.0.1/name"),
        (["serve", "--port", "0"], "PULLBACK_POOL_SIZE", "many"),
        (["worker"], "DATABASE_URL_FILE", "/no/such/file"),
        (["migrate"], "DATABASE_URL", "garbage"),
        (["up", "--no-agent", "--port", "0"], "DATABASE_URL", "garbage"),
        (["db", "backup", "file"], "DATABASE_URL", "garbage"),
        (["db", "restore", "file"], "DATABASE_URL", "garbage"),
        (["db", "upgrade"], "PULLBACK_LEASE_S", "-1"),
        (["db", "check"], "DATABASE_URL", "garbage"),
        (["db", "rebuild"], "DATABASE_URL", "garbage"),
        (["token", "list"], "DATABASE_URL", "garbage"),
        (["project", "create", "demo"], "DATABASE_URL", "garbage"),
    ],
)
def test_a_wrong_setting_is_told_before_anything_heavy_is_loaded(tmp_path, command, variable, value):
    shown = subprocess.run(
        [sys.executable, "-P", "-c", _LOOKED, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", variable: value},
    )
    assert shown.returncode == 2, shown.stderr
    assert shown.stderr.startswith(f"pullback: {variable} ")
    assert shown.stdout == "[]\n"


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("command", ["status", "down"])
def test_to_look_at_a_folder_or_to_stop_what_runs_there_loads_nothing_heavy(tmp_path, command):
    (tmp_path / "postgres").mkdir()
    shown = subprocess.run(
        [sys.executable, "-P", "-c", _LOOKED, command, "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.stdout.splitlines()[-1] == "[]", shown.stderr


@pytest.mark.long
def test_a_port_in_use_and_a_missing_secret_are_told_before_anything_heavy_is_loaded(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for arguments, environment, said in (
            (["--port", port], {}, f"port {port} "),
            (["--port", "0"], {"PULLBACK_TOKEN_FILE": "/no/such/file"}, "PULLBACK_TOKEN_FILE names /no/such/file"),
        ):
            shown = subprocess.run(
                [sys.executable, "-P", "-c", _LOOKED, "serve", *arguments],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
                cwd=tmp_path,
                env={"PATH": "/usr/bin:/bin", "DATABASE_URL": "postgresql://u@127.0.0.1/name", **environment},
            )
            assert (shown.returncode, shown.stdout) == (2, "[]\n"), shown.stderr
            assert shown.stderr.startswith(f"pullback: {said}")


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    "arguments", [["migrate"], ["agent", "--server", "http://127.0.0.1:1", "--token-file", "secret"]]
)
def test_a_secret_that_is_no_text_is_one_sentence(tmp_path, arguments):
    (tmp_path / "secret").write_bytes(b"\xff\xfe")
    environment = {"PATH": "/usr/bin:/bin", "DATABASE_URL_FILE": "secret", "PYTHONUTF8": "1"}
    shown = _pullback(*arguments, cwd=tmp_path, env=environment)
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1)
    assert "is not text" in shown.stderr


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("flags", [["--detach"], []])
def test_a_data_folder_that_cannot_be_made_is_one_sentence(tmp_path, flags):
    (tmp_path / "file").touch()
    shown = _pullback("up", *flags, "--port", "0", "--data", str(tmp_path / "file" / "data"))
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1)
    assert "choose another with --data" in shown.stderr


def test_nothing_running_is_said_and_is_exit_code_1(tmp_path):
    shown = _pullback("status", "--data", str(tmp_path))
    assert (shown.returncode, "nothing is running" in shown.stdout) == (1, True)
    shown = _pullback("down", "--data", str(tmp_path))
    assert (shown.returncode, "nothing is running" in shown.stdout) == (0, True)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("run --suite ", ["quick", "standard", "full", "trial"]),
        ("run --suite st", ["standard"]),
        ("run --case lst", ["lstm", "lstm_lm"]),
        ("run --variant torch", ["torch", "torch-compile"]),
        ("compare --variant nat", ["native"]),
        ("workloads sad", ["saddle"]),
        ("gradbench --tier st", ["stateful"]),
        ("run --variant nonsense", []),
    ],
)
def test_tab_offers_what_an_option_takes(words, offered):
    pytest.importorskip("pyperf")
    line = f"pullback {words}"
    asked = {"_PULLBACK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    program = "from pullback_cli.main import main; main()"
    shown = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['pullback']; " + program],
        env={**os.environ, **asked}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert shown.stderr == ""
    assert shown.stdout.split() == offered
