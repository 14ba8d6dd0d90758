"""All ten million points again, while uploads go on: by the detector of another release, and projected and judged after an upgrade."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

import psutil
import psycopg
from benchmarks.service_load import shape
from benchmarks.service_load.processes import MIB, Service
from benchmarks.service_load.thresholds import Figure, Percentiles
from benchmarks.service_load.uploading import post_paced

from pullback_service.rule_version import RULE

UPLOADS_A_SECOND = 10
LOOK_EVERY_S = 0.2
PATIENCE_S = 3600.0


def renew_everything(service: Service, url: str) -> Iterator[Figure]:
    """Time and memory of `pullback db detect` for all history, and of a worker that projects and judges it."""
    with psycopg.connect(url, autocommit=True) as database:
        yield from _detect(service, database, url)
        yield from _project(service, database)


def _detect(service: Service, database: "psycopg.Connection[Any]", url: str) -> Iterator[Figure]:
    with _Uploads(service, database) as uploads:
        process = psutil.Popen(
            [sys.executable, "-P", "-m", "pullback_cli", "db", "detect", "--project", shape.PROJECT],
            env={**os.environ, "DATABASE_URL": url},
            stdout=subprocess.DEVNULL,
        )
        seconds, memory = _watch(process, lambda: process.poll() is not None)
    if process.returncode not in (
        0,
        1,
    ):  # 1: it found what is not stored, since nothing was looked for when the project was filled
        raise RuntimeError(f"`pullback db detect` ended with {process.returncode}.")
    yield Figure("another detector over all history", seconds, "s", most=900)
    yield Figure("… memory of the process", memory, "MiB", most=300)
    yield from uploads.figures()


def _project(service: Service, database: "psycopg.Connection[Any]") -> Iterator[Figure]:
    """As a database is that an earlier release filled: nothing is projected, nothing judged."""
    assert service.worker is not None  # noqa: S101 - it is what is measured
    database.execute("TRUNCATE reading, step")
    database.execute("UPDATE commit SET projected = false, judged_by = 0")
    database.execute("VACUUM ANALYZE commit")
    with _Uploads(service, database) as uploads:
        seconds, memory = _watch(service.worker, lambda: _is_done(database))
    yield Figure("all history projected and judged by the worker", seconds, "s", most=900)
    yield Figure("… memory of the worker", memory, "MiB", most=300)
    yield from uploads.figures()


def _is_done(database: "psycopg.Connection[Any]") -> bool:
    row = database.execute(
        "SELECT NOT EXISTS (SELECT FROM commit WHERE NOT projected OR judged_by < %s)", [RULE]
    ).fetchone()
    assert row is not None  # noqa: S101 - EXISTS always answers
    return bool(row[0])


def _watch(process: psutil.Process, is_done: Callable[[], bool]) -> tuple[float, float]:
    """Seconds until something is done, and the most MiB that a process had until then."""
    began, most = time.monotonic(), 0.0
    while not is_done():
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            most = max(most, process.memory_info().rss / MIB)
        if time.monotonic() - began > PATIENCE_S:
            raise TimeoutError(f"Not done after {PATIENCE_S:g} s.")
        time.sleep(LOOK_EVERY_S)
    return time.monotonic() - began, most


class _Uploads:
    """Small uploads to a project of their own, so many a second, while a block runs."""

    def __init__(self, service: Service, database: "psycopg.Connection[Any]") -> None:
        self._service, self._database = service, database
        self._project = f"meanwhile-{time.time_ns()}"
        self._stop = threading.Event()
        self._durations: list[float] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        self._durations += post_paced(self._service, self._project, self._stop, a_second=UPLOADS_A_SECOND)

    def figures(self) -> Iterator[Figure]:
        """The time that they took, and the time that the chores which follow them waited."""
        times = Percentiles.of(self._durations)
        yield Figure(
            "… concurrent uploads, p95", times.p95, "ms", most=250,
            note=f"{times.n} of {UPLOADS_A_SECOND} a second, none refused; p50 {times.p50:.0f} ms, longest {times.most:.0f} ms",
        )  # fmt: skip
        row = self._database.execute(
            """
            SELECT max(extract(epoch FROM followed_up_at - received_at))
              FROM report JOIN project ON project.id = project_id WHERE name = %s
            """,
            [self._project],
        ).fetchone()
        assert row is not None  # noqa: S101 - max always answers
        yield Figure("… longest wait of their chores", float(row[0]), "s", most=5)
