"""Clocks of service, worker and Postgres that jump by hours while uploads and jobs go on; they stay there until all is done."""

import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from benchmarks.faults.database import wrong_in
from tests.system.products import until
from tests.system.test_faults import (
    ASKED,
    FINAL,
    UNFOLLOWED,
    World,
    _jobs_are_done_once,
    _uploads_are_there_once,
    ask_for_jobs,
    make_upload,
    measure_all,
    rows_of,
    upload_all,
)

from pullback_service.postgres import EmbeddedPostgres

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(sys.platform != "linux", reason="ld.so of Linux, 64 bits"),
]

HOURS = 6 * 3600
JUMPS = [(whose, to) for whose in ("service", "database") for to in (HOURS, 0, -HOURS, 0)]
UPLOADS, JOBS, AGENTS = 6, 3, 2
PERIODIC = (
    "SELECT COALESCE(max(id), 0) FROM procrastinate.procrastinate_periodic_defers WHERE task_name ~ 'expire_leases$'"
)
PATIENCE_S = 90
"""A wait for a clock that was set back would be hours."""


class Clock:
    """The wall clock of some processes."""

    def __init__(self, folder, name, library):
        self._file = folder / name
        self.set(0)
        self.environment = {"LD_PRELOAD": str(library), "PULLBACK_TEST_SHIFT": str(self._file)}

    def set(self, seconds):
        """Let it be so many seconds ahead of the true time."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("@l", seconds))


@pytest.fixture
def clocks(folder):
    library = folder / "shifted_clock.so"
    source = Path(__file__).with_name("shifted_clock.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return {name: Clock(folder, name, library) for name in ("service", "database")}


@pytest.fixture
def server(folder, clocks, monkeypatch):
    running = EmbeddedPostgres(folder / "postgres")
    with monkeypatch.context() as patch:
        for name, value in clocks["database"].environment.items():
            patch.setenv(name, value)
        running.start()
    yield running
    running.destroy()


@pytest.fixture
def cluster(start_cluster, server, clocks):
    environment = {
        "DATABASE_URL": server.url(),
        "PULLBACK_LEASE_S": "4",
        "PULLBACK_HEARTBEAT_S": "1",
        "PULLBACK_RETRY_PAUSE_S": "0.1",
        "PULLBACK_LOG_LEVEL": "warning",
    }
    return start_cluster(environment | clocks["service"].environment, replicas=1, workers=1)


@pytest.mark.long(most_s=1200)
def test_a_jump_by_hours_loses_nothing_ends_no_job_twice_and_holds_up_nothing(cluster, server, clocks):
    rows, world = rows_of(server), World(cluster.urls)
    uploads, jobs = [], {}
    with ThreadPoolExecutor(AGENTS + 3) as pool:
        agents = [pool.submit(measure_all, world, number, f"agent {number}") for number in range(AGENTS)]
        try:
            for number, (whose, to) in enumerate(JUMPS):
                fresh = [make_upload(number * UPLOADS + each) for each in range(UPLOADS)]
                uploads += fresh
                asking = pool.submit(ask_for_jobs, world, JOBS * (number + 1), f"jobs {number}")
                sending = [pool.submit(upload_all, world, fresh[each::2], f"{number} {each}") for each in range(2)]
                until(lambda fresh=fresh: any(upload.receipts for upload in fresh), 60, "an upload before the jump")
                ((queued,),) = rows(PERIODIC)
                clocks[whose].set(to)
                if whose == "database":
                    ((seen,),) = rows("SELECT extract(epoch FROM clock_timestamp())::float8")
                    assert abs(seen - time.time() - to) < 60
                for each in sending:
                    each.result()
                for place, ids in asking.result().items():
                    jobs.setdefault(place, set()).update(ids)
                what = f"after the clock of the {whose} went to {to:+} s"
                until(lambda: all(state in FINAL for _, state, _ in rows(ASKED)), PATIENCE_S, f"jobs to end {what}")
                until(lambda: rows(UNFOLLOWED) == [(0,)], PATIENCE_S, f"what follows uploads {what}")
                until(lambda queued=queued: rows(PERIODIC)[0][0] > queued, PATIENCE_S, f"a periodic chore {what}")
        finally:
            world.finished = True
        work = [agent.result() for agent in agents]
    assert world.surprises == []
    # 503: of two transactions that wait for each other Postgres ends one, which is sent again.
    assert set(world.statuses) <= {200, 201, 204, 400, 404, 409, 415, 416, 422, 503}, world.statuses
    assert world.statuses[503] <= 2 * len(JUMPS)
    assert "unexpected_error" not in cluster.said()
    _uploads_are_there_once(rows, uploads)
    _jobs_are_done_once(rows, jobs, work)
    assert wrong_in(rows) == []
