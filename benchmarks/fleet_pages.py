"""Response times of the fleet's pages, with 20 machines, two months of A/A history each, and 500 waiting jobs.

    python -m benchmarks.fleet_pages

Starts a Postgres and the application on this machine and asks for each page in turn; 150 ms at the 95th percentile is the
limit. On a machine that does other things look at the processor time, of the application and of Postgres, instead.
"""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import psycopg
import uvicorn

from pullback_cli.app import create_app
from pullback_service import migrations
from pullback_service.postgres import EmbeddedPostgres
from pullback_service.settings import Settings

TIMES = 30
PAGES = ("/fleet", "/machines/3", "/jobs", "/jobs?state=queued&page=5", "/jobs/1", "/jobs/200")
_FILL = """
INSERT INTO project (name) VALUES ('p');
INSERT INTO commit (project_id, sha, title, ordered_at)
  SELECT 1, lpad(n::text, 40, '0'), 'Change ' || n, now() FROM generate_series(1, 600) n;
INSERT INTO machine (fingerprint, name, facts)
  SELECT 'print ' || n, 'lab-' || n, '{"cpu": "EPYC 7B13", "cores": 8, "memory_gib": 31}' FROM generate_series(1, 20) n;
INSERT INTO agent (machine_id, name, labels) SELECT id, name, '{"device": "cpu"}' FROM machine;
INSERT INTO job (project_id, commit_id, suite, timeout_s, state, attempts, finished_at)
  SELECT 1, n, CASE WHEN n % 5 = 0 THEN 'standard' ELSE 'quick' END, 3600,
         CASE WHEN n <= 80 THEN 'done' WHEN n <= 90 THEN 'running' ELSE 'queued' END,
         CASE WHEN n <= 90 THEN 1 ELSE 0 END, CASE WHEN n <= 80 THEN now() END
    FROM generate_series(1, 590) n;
INSERT INTO attempt (job_id, number, agent_id, machine_id, lease_token, lease_expires_at, state, leased_at, ended_at, phase, progress)
  SELECT j.id, 1, 1 + j.id % 20, 1 + j.id % 20, gen_random_uuid(), now() + interval '1 h', j.state, now() - interval '9 min',
         CASE WHEN j.state = 'done' THEN now() END, 'measure', '{"done": 3, "total": 40, "message": "poly9[n=10]"}'
    FROM job j WHERE j.attempts > 0;
INSERT INTO "case" (project_id, identity, workload, params, label)
  SELECT 1, n::text::bytea, 'workload ' || n, '{}', 'workload ' || n FROM generate_series(1, 3) n;
INSERT INTO report (id, project_id, commit_id, machine_id, idempotency_key, digest, body_bytes, format, version, quality, dirty,
                    cases, points, failures, started_at, received_at, followed_up_at)
  SELECT gen_random_uuid(), 1, 1, m.id, m.id || '-' || h, '', 0, 'pullback-report', 1, 'clean', false, 0, 0, 0,
         now() - h * interval '12 h', now() - h * interval '12 h', now()
    FROM machine m, generate_series(1, 120) h;
INSERT INTO comparison (report_id, case_id, machine_id, reference_id, candidate_id, variant, metric, log_ratio, low, high, n,
                        outcome, group_log_ratios)
  SELECT r.id, c.id, r.machine_id, 1, 1, v, 'time', 0.001, -0.002, 0.003, 20, 'same',
         ARRAY(SELECT (random() - 0.5) * 0.02 + 0 * r.machine_id FROM generate_series(1, 20))
    FROM report r, "case" c, unnest(ARRAY['unfused', 'fused', 'stateful']) v;
ANALYZE;
"""


@contextmanager
def _serving(url: str) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(create_app(Settings(DATABASE_URL=url)), port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def _backends_s(postmaster: psutil.Process) -> float:
    spent = (child.cpu_times() for child in postmaster.children())
    return sum(times.user + times.system for times in spent)


def main() -> None:
    """Print one line a page."""
    folder = Path(tempfile.mkdtemp(prefix="pullback-fleet-"))
    postgres = EmbeddedPostgres(folder / "data")
    url = postgres.start()
    try:
        migrations.upgrade(url)
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in _FILL.split(";\n"):
                connection.execute(statement.encode())
        pid_file = next((folder / "data").rglob("postmaster.pid"))
        postmaster = psutil.Process(int(pid_file.read_text().splitlines()[0]))
        with _serving(url) as base, httpx.Client(base_url=base, timeout=60) as client:
            for page in PAGES:
                began = time.perf_counter()
                client.get(page).raise_for_status()
                cold_s = time.perf_counter() - began
                app_s, backends_s = time.process_time(), _backends_s(postmaster)
                seconds = []
                for _ in range(TIMES):
                    began = time.perf_counter()
                    size = len(client.get(page).content)
                    seconds.append(time.perf_counter() - began)
                seconds.sort()
                app_s = (time.process_time() - app_s) / TIMES
                backends_s = (_backends_s(postmaster) - backends_s) / TIMES
                print(
                    f"{page:28} p50 {seconds[TIMES // 2] * 1e3:4.0f} ms  p95 {seconds[int(TIMES * 0.95)] * 1e3:4.0f} ms  "
                    f"cold {cold_s * 1e3:5.0f} ms  {size / 1e3:3.0f} kB  "
                    f"processor: application {app_s * 1e3:3.0f} ms, Postgres {backends_s * 1e3:3.0f} ms"
                )
    finally:
        postgres.stop()


if __name__ == "__main__":
    main()
