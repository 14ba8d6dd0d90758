"""`pullback up`, `status` and `down` as a person lives with them."""

import json
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import psutil
import pytest
from tests.system.clusters import is_ready
from tests.system.conftest import small_library

from pullback_cli.supervision.state_file import read_state

pytestmark = pytest.mark.system


@pytest.fixture
def repository(folder):
    return small_library(folder)


def test_one_up_a_folder_whose_children_are_kept_alive(running, until):
    status = running.status()
    refused = running.run(*running.up_arguments("--no-agent"))
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert status["url"] in refused.stderr

    os.kill(status["processes"]["api"], signal.SIGKILL)
    before = status["processes"]["api"]

    def renewed():  # by what `status` reads: the command itself takes a second of processor time
        state = read_state(running.data)
        return state.ready and "api" in state.children and state.children["api"].pid != before

    until(renewed, what="a new API")
    until(lambda: is_ready(status["url"]), what="the new API to be ready")
    assert running.status()["ready"]
    assert "the api ended unexpectedly (killed by SIGKILL" in (running.data / "logs" / "up.log").read_text()


@pytest.mark.long
def test_down_finds_an_up_whose_state_file_is_of_no_use(running):
    """As after a step of the clock, by which earlier releases took the marked processes for others."""
    before = running.status()
    state = json.loads((running.data / "up.json").read_text())
    for mark in (state["up"], *state["children"].values()):
        mark["started"] += 1
    (running.data / "up.json").write_text(json.dumps(state))
    assert running.status()["processes"]["up"] == before["processes"]["up"]
    assert "stopped (up" in running.down().stdout
    assert running.processes() == []


@pytest.mark.long
def test_killing_up_leaves_what_the_next_up_takes_over(running, until):
    before = running.status()
    os.kill(before["processes"]["up"], signal.SIGKILL)
    children = [pid for name, pid in before["processes"].items() if name != "up"]
    until(lambda: not any(_runs(pid) for pid in children), what="the children to die with their parent")
    assert _runs(before["postgres"]["pid"])
    assert "left behind: Postgres" in running.run("status", "--data", str(running.data)).stdout

    running.up("--no-agent")
    after = running.status()
    assert after["ready"]
    assert after["postgres"]["pid"] == before["postgres"]["pid"], "the running database is adopted"

    os.kill(after["processes"]["up"], signal.SIGKILL)
    assert "Postgres" in running.down().stdout
    assert running.processes() == []


@pytest.mark.parametrize("measures", [False, pytest.param(True, marks=pytest.mark.long)])
def test_ctrl_c_stops_everything_also_in_the_middle_of_measuring(product, until, tmp_path, measures):
    log = tmp_path / "log"
    up = product.start(*product.up_arguments(*(("--suite", "trial") if measures else ("--no-agent",))), log=log)
    until(lambda: "is ready" in log.read_text(), what="up to be ready")
    measuring = until(product.measuring, what="measuring") if measures else []
    up.send_signal(signal.SIGINT)
    assert up.wait(60) == 0
    assert product.processes() == []
    assert not any(process.is_running() for process in measuring)


@pytest.mark.parametrize("detach", [[], pytest.param(["--detach"], marks=pytest.mark.long)])
def test_a_port_in_use_is_refused_and_nothing_is_started(product, detach):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = product.run("up", "--data", str(product.data), "--port", str(port), *detach)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"pullback: port {port} on 127.0.0.1")
    assert "--port" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (product.data / "postgres").exists()
    assert product.processes() == []


@pytest.mark.long
def test_data_of_another_postgres_is_refused(product):
    postgres = product.data / "postgres"
    postgres.mkdir(parents=True)
    (postgres / "PG_VERSION").write_text("15\n")
    refused = product.run(*product.up_arguments())
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "Postgres 15" in refused.stderr
    assert product.processes() == []


@pytest.mark.long
def test_a_database_that_is_not_there_is_refused(product, tmp_path):
    product._environment["DATABASE_URL"] = f"postgresql://nobody@/nothing?host={tmp_path}"
    refused = product.run(*product.up_arguments())
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "DATABASE_URL" in refused.stderr
    assert product.processes() == []


@pytest.mark.long
def test_a_database_of_ones_own_is_used_and_left_alone(product, database_url):
    product._environment["DATABASE_URL"] = database_url
    product.up("--no-agent")
    assert product.status()["postgres"] == {"embedded": False, "pid": None}
    assert not (product.data / "postgres").exists()
    assert product.down().returncode == 0
    assert product.processes() == []


def _runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_user_can_do_all_this(product, connect, folder, until):
    for path in (Path(subprocess.sys.executable), product.repository):
        if not all(parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents):
            pytest.skip(f"an ordinary user cannot reach {path}")
    nobody = 65534
    for path in (folder, product.home, product.repository, *product.repository.rglob("*")):
        os.chown(path, nobody, nobody)
    product._user = nobody
    product.up("--suite", "trial")
    api = connect(product.status()["url"])
    for job in until(lambda: api.get("/api/v1/jobs")["items"], what="jobs, once the start is over"):
        api.wait_for_job(job["id"], "done")
    assert product.data.stat().st_uid == nobody
    assert product.down().returncode == 0
    assert product.processes() == []
