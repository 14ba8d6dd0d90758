"""Makes the large project and serves it: how pages look and how long they take with 500 workloads on 20 machines.

The folder keeps the database; it is filled once. With --measure every page is asked for a few times and its weight and
times are printed; without, the service runs until it is interrupted.
"""

import argparse
import asyncio
import re
import signal
import sys
import threading
import time
from pathlib import Path
from statistics import median
from typing import NoReturn
from urllib.parse import quote

import httpx
import psycopg
import uvicorn
from benchmarks.large_project import shape
from benchmarks.large_project.filling import fill

from pullback_cli.app import create_app
from pullback_service import migrations
from pullback_service.database_rebuild import project_all
from pullback_service.postgres import EmbeddedPostgres
from pullback_service.settings import Settings

TIMES = 9
DENSE = quote("dense_bias_act")
PAGES = {
    "overview": "/?project=large",
    "overview, memory": "/?project=large&metric=array_bytes",
    "overview, worst first": "/?project=large&sort=worst",
    "overview, page 7": "/?project=large&page=7",
    "overview, filtered": "/?project=large&q=conv&device=cpu&suite=quick",
    "overview, only changed": "/?project=large&changed=1",
    "workload": f"/projects/large/workloads/{DENSE}",
    "workload, its figure": f"/projects/large/workloads/{DENSE}.figure.json",
    "workload, all commits": f"/projects/large/workloads/{DENSE}.figure.json?last=5000",
    "explore": "/projects/large/explore",
    "compare": "/projects/large/compare",
}


def main(arguments: list[str] | None = None) -> int:
    """Fill where the folder is new, then serve or measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_project", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the database lives; kept, filled once")
    parser.add_argument("--port", type=int, default=8650)
    parser.add_argument("--workloads", type=int, default=500)
    parser.add_argument("--machines", type=int, default=20)
    parser.add_argument("--commits", type=int, default=120)
    parser.add_argument("--measure", action="store_true", help="print weights and times, and stop")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, _end)
    server = EmbeddedPostgres(options.folder / "postgres")
    try:
        url = server.start()
        migrations.upgrade(url)
        if not _is_filled(url):
            began = time.monotonic()
            points = fill(url, shape.Shape(options.workloads, options.machines, options.commits))
            asyncio.run(project_all(url))
            print(f"{points} points in {time.monotonic() - began:.0f} s", flush=True)
        app = create_app(Settings(DATABASE_URL=url))
        running = uvicorn.Server(uvicorn.Config(app, port=options.port, log_level="warning"))
        if not options.measure:
            print(f"http://127.0.0.1:{options.port}/", flush=True)
            running.run()
            return 0
        thread = threading.Thread(target=running.run)
        thread.start()
        try:
            while not running.started:
                time.sleep(0.05)
            measure(f"http://127.0.0.1:{options.port}")
        finally:
            running.should_exit = True
            thread.join()
    finally:
        server.stop()
    return 0


def measure(base: str) -> None:
    """Weights on the wire, with style sheet and scripts but without Plotly, and how long an answer takes from outside."""
    print(f"{'page':28} {'page, kB':>9} {'all, kB':>8} {'median, ms':>11} {'worst, ms':>10}")
    with httpx.Client(base_url=base, timeout=60) as client:
        for name, path in PAGES.items():
            answer = client.get(path, follow_redirects=True).raise_for_status()
            assets = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', answer.text))
            weight = sum(client.get(asset).num_bytes_downloaded for asset in assets if "plotly" not in asset)
            took = []
            for _ in range(TIMES):
                began = time.perf_counter()
                client.get(path)
                took.append((time.perf_counter() - began) * 1e3)
            size = answer.num_bytes_downloaded
            print(
                f"{name:28} {size / 1e3:9.0f} {(size + weight) / 1e3:8.0f} {median(took):11.0f} {max(took):10.0f}",
                flush=True,
            )


def _end(number: int, _: object) -> NoReturn:
    """End as Ctrl-C does, by an exception, so that Postgres is stopped too; uvicorn raises the signal again when it is down."""
    raise SystemExit(128 + number)


def _is_filled(url: str) -> bool:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM project WHERE name = %s", [shape.PROJECT]).fetchone()
    return bool(row and row[0])


if __name__ == "__main__":
    sys.exit(main())
