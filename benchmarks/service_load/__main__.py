"""Throughput and response times of the service at ten million points.

Starts a Postgres of its own in the folder, migrates it, fills it (once; an interrupted fill goes on), starts
`pullback serve` and `pullback worker`, and measures from outside, on the same machine, how long a client waits.
"""

import argparse
import asyncio
import json
import os
import platform
import resource
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from benchmarks.service_load import api_reads, detecting, filling, pages, renewing, shape, uploading, waiting
from benchmarks.service_load.page import put_into
from benchmarks.service_load.processes import Service, serving
from benchmarks.service_load.thresholds import Figure, table
from benchmarks.service_load.warming import read_once

from pullback_service import migrations
from pullback_service.database_rebuild import project_all
from pullback_service.postgres import EmbeddedPostgres

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
PARTS = ("queries", "matrix", "pages", "large", "small", "agents", "detection", "renewal")

EXAMPLES = """examples:
  python -m benchmarks.service_load --folder /tmp/load --points 200000       a minute, for a first look
  python -m benchmarks.service_load --folder /tmp/load --fill-only           ten million points: a quarter of an hour, once
  python -m benchmarks.service_load --folder /tmp/load --json load.json --write-docs
"""


def main(arguments: list[str] | None = None) -> int:
    """Fill, measure, print and keep; exit status 1 says that a figure was missed, or that a part failed."""
    options = _parser().parse_args(arguments)
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    server = EmbeddedPostgres(folder / "postgres")
    ours = not server.is_running()
    url = server.start()
    try:
        migrations.upgrade(url)
        _fill(url, options.points)
        if options.fill_only:
            return 0
        if ours:  # nothing is in Postgres' own memory: what comes first is cold
            server.stop()
            url = server.start()
        figures: list[Figure] = []
        failed: list[str] = []
        with serving(server, folder / "processes", replicas=options.replicas) as service:
            facts = _facts(url, options.replicas)
            for part in [part for part in PARTS if part in (options.only or PARTS)]:
                try:
                    for figure in _measure(part, service, url, warm=not options.from_disk):
                        figures.append(figure)
                        print(
                            f"{figure.what}: {figure.value:.4g} {figure.unit} ({figure.asked}) {figure.note}",
                            flush=True,
                        )
                except Exception:  # noqa: BLE001 - what the other parts measure is kept
                    traceback.print_exc()
                    failed.append(part)
                if options.json:
                    options.json.write_text(
                        json.dumps({"facts": facts, "figures": [f.as_json() for f in figures]}, indent=1)
                    )
    finally:
        if ours:
            server.stop()
    print("", *table(figures), sep="\n")
    if failed:
        print(f"\nNot measured to their end: {', '.join(failed)}. Measure them again with --only.")
    elif options.write_docs:
        PAGE.write_text(put_into(PAGE.read_text(), facts, figures))
    return 1 if failed or any(figure.met is False for figure in figures) else 0


def _fill(url: str, points: int) -> None:
    began = time.monotonic()
    for done, wanted in filling.fill(url, points):
        if done < wanted or time.monotonic() - began > 1:
            print(f"\rfilled {done} of {wanted} commits, {time.monotonic() - began:.0f} s", end="", flush=True)
    print("\nvacuum and analyze", flush=True)
    filling.vacuum(url)
    began = time.monotonic()
    if commits := asyncio.run(project_all(url)):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"projected and judged {commits} commits, {time.monotonic() - began:.0f} s, {most:.0f} MiB", flush=True)
        filling.vacuum(url)


def _measure(part: str, service: Service, url: str, *, warm: bool) -> Iterator[Figure]:
    known = _known(url)
    measuring = {
        "queries": lambda: api_reads.ask_everything(service, known),
        "matrix": lambda: api_reads.ask_matrix(url),
        "pages": lambda: pages.ask_pages(service, known.commits),
        "large": lambda: uploading.upload_large(service),
        "small": lambda: uploading.upload_small(service, url),
        "agents": lambda: waiting.wait_for_work(service),
        "detection": lambda: detecting.detect_everything(service, url),
        "renewal": lambda: renewing.renew_everything(service, url),
    }
    if warm:
        read_once(url)
    yield from measuring[part]()


def _known(url: str) -> api_reads.DatabaseContents:
    with psycopg.connect(url) as connection:
        project = connection.execute("SELECT id FROM project WHERE name = %s", [shape.PROJECT]).fetchone()
        assert project is not None  # noqa: S101 - just filled
        series = [
            row[0] for row in connection.execute("SELECT id FROM series WHERE project_id = %s ORDER BY id", project)
        ]
        commits = connection.execute("SELECT count(*) FROM commit WHERE project_id = %s", project).fetchone()
    assert commits is not None  # noqa: S101 - count always answers
    return api_reads.DatabaseContents(int(commits[0]), series)


def _facts(url: str, replicas: int) -> dict[str, Any]:
    with psycopg.connect(url) as connection:
        version = connection.execute("SHOW server_version").fetchone()
    tables = {name: {"rows": rows, "bytes": size} for name, rows, size in filling.facts(url)}
    return {
        "cpus": os.cpu_count(),
        "machine": _processor(),
        "python": platform.python_version(),
        "postgres": version[0] if version else "",
        "replicas": replicas,
        "load_average": os.getloadavg()[0],
        "tables": tables,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.service_load",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the database lives; kept, filled once")
    parser.add_argument("--points", type=int, default=10_000_000, help="about how many to fill (default: ten million)")
    parser.add_argument("--fill-only", action="store_true", help="fill and stop")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this alone; may be given again")
    parser.add_argument(
        "--from-disk", action="store_true", help="do not read the database into memory before a part is measured"
    )
    parser.add_argument("--replicas", type=int, default=1, help="`pullback serve` processes on one socket (default: 1)")
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/scale.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
