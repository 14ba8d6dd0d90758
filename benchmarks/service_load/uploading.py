"""Uploads: a large one, and many small ones from eight clients at once."""

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
import orjson
import psycopg
from benchmarks.service_load import shape
from benchmarks.service_load.calling import Answer, BarePosts, Connection
from benchmarks.service_load.processes import MIB, TOKEN, MemoryWatch, ProcessorSeconds, Service
from benchmarks.service_load.thresholds import Figure, Percentiles

LARGE_RESULTS = 10_000
LARGE_PROCESSES = 20
SETTLED_AFTER_S = 5.0
CLIENTS = 8
UPLOADS_OF_A_COMMIT = 4
MOST_A_SECOND = 500


def upload_large(service: Service, *, rounds: int = 3) -> Iterator[Figure]:
    """10,000 results, each with the values of twenty processes, into a project of its own.

    The first one makes 5,000 cases and 10,000 series; the later ones, at the next commits, find them.
    """
    run = time.time_ns()
    project = f"large-{run}"
    connection = service.connect()
    _post(connection, _small_report(project, run, 0, 0))  # code and connections are warm
    took, used, grown, stays = [], [], [], []
    for number in range(rounds):
        body = orjson.dumps(_large_report(project, run, number + 1))
        time.sleep(1)
        before, used_before = service.rss(), service.cpu_s()
        with MemoryWatch(service) as memory:
            answer = _post(connection, body)
        used_now = service.cpu_s().since(used_before)
        assert answer.json()["points"] == LARGE_RESULTS, answer.body  # noqa: S101 - else the figure means nothing
        time.sleep(SETTLED_AFTER_S)
        took.append(answer.seconds)
        used.append(used_now)
        grown.append((memory.peak - before) / MIB)
        stays.append((service.rss() - before) / MIB)
    connection.close()
    cpu = ", ".join(f"{u.service:.2f} + {u.postgres:.2f}" for u in used)
    details = {"seconds": took, "grown_mib": grown, "stays_mib": stays, "body_mib": len(body) / MIB}
    yield Figure(
        "upload of 10,000 results", max(took), "s", most=2.0, details=details,
        note=f"first {took[0]:.2f} s, then {', '.join(f'{t:.2f}' for t in took[1:])} s; CPU of service + Postgres {cpu} s",
    )  # fmt: skip
    yield Figure("… memory of the service grows", max(grown), "MiB", most=60, note=f"{[round(g, 1) for g in grown]}")
    yield Figure(
        "… and comes back to", max(stays), "MiB", most=10,
        note=f"{SETTLED_AFTER_S:g} s after each, against before it: {[round(s, 1) for s in stays]}",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class UploadTimes:
    """Small uploads that were acknowledged: their reports, how long each took, how long all took, and what that used."""

    reports: list[str]
    durations: list[float]
    seconds: float
    used: ProcessorSeconds

    @property
    def rate(self) -> float:
        """Uploads a second."""
        return len(self.reports) / self.seconds


def upload_small(service: Service, url: str, *, seconds: float = 20.0) -> Iterator[Figure]:
    """Small reports from eight clients as fast as they are answered: two variants of a case, six points.

    Four uploads of each commit, from different machines, each telling parents and branch, in no order between clients.
    """
    run = time.time_ns()
    done = post_small(service, f"small-{run}", run, seconds=seconds)
    times = Percentiles.of(done.durations)
    lost = _lost(url, done.reports)
    each = 1000 / len(done.reports)
    yield Figure(
        "small uploads, 8 clients", done.rate, "/s", least=150,
        note=f"{len(done.reports)} in {done.seconds:.1f} s; CPU each: service {done.used.service * each:.2f}, "
        f"Postgres {done.used.postgres * each:.2f}, worker {done.used.worker * each:.2f} ms",
    )  # fmt: skip
    yield Figure(
        "… p99", times.p99, "ms", most=250, note=f"p50 {times.p50} ms, p95 {times.p95} ms, longest {times.most} ms"
    )
    yield Figure("… lost", lost, "", most=0, note="acknowledged, but not stored with all points")


def post_small(service: Service, project: str, run: int, *, seconds: float, most: int | None = None) -> UploadTimes:
    """Small reports into a project from eight clients, for so many seconds, or at most so many reports."""
    connection = service.connect()
    for number in range(20):
        _post(connection, _small_report(project, run, 100_000 + number, 0))
    connection.close()
    answers: list[bytes] = []
    durations: list[float] = []
    # Made beforehand, so that clients take as little as they can of the processors that they share with the service.
    reports = iter(
        [
            _small_report(project, run, number // UPLOADS_OF_A_COMMIT, number)
            for number in range(most or int(MOST_A_SECOND * seconds))
        ]
    )
    stop = time.perf_counter() + seconds

    def one_client() -> None:
        client = BarePosts(service.port, TOKEN, "/api/v1/reports")
        # Lists are appended to and the iterator is advanced by one thread at a time: the interpreter sees to that.
        for report in reports:
            status, answer, took = client.post(report)
            if status != 201:
                raise RuntimeError(f"An upload was answered with {status}: {answer[:500]!r}")
            durations.append(took)
            answers.append(answer)
            if time.perf_counter() > stop:
                break
        client.close()

    used_before, began = service.cpu_s(), time.perf_counter()
    threads = [threading.Thread(target=one_client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, used = time.perf_counter() - began, service.cpu_s().since(used_before)
    return UploadTimes([orjson.loads(answer)["id"] for answer in answers], durations, took, used)


def post_paced(service: Service, project: str, stop: threading.Event, *, a_second: float) -> list[float]:
    """Small reports from one client, so many a second until it is told to stop; the seconds that each took."""
    client, run = BarePosts(service.port, TOKEN, "/api/v1/reports"), time.time_ns()
    durations: list[float] = []
    began = time.monotonic()
    while not stop.wait(max(0.0, began + len(durations) / a_second - time.monotonic())):
        number = len(durations)
        status, answer, took = client.post(_small_report(project, run, number // UPLOADS_OF_A_COMMIT, number))
        if status != 201:
            raise RuntimeError(f"An upload was answered with {status}: {answer[:500]!r}")
        durations.append(took)
    client.close()
    return durations


def _lost(url: str, acknowledged: list[str]) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM unnest(%s::uuid[]) a(id) WHERE NOT EXISTS (SELECT 1 FROM report r WHERE r.id = a.id "
            "AND r.points = (SELECT count(*) FROM point p WHERE p.report_id = r.id))",
            [acknowledged],
        ).fetchone()
    assert row is not None  # noqa: S101 - count always answers
    return int(row[0])


def _post(connection: Connection, report: bytes) -> Answer:
    answer = connection.send("POST", "/api/v1/reports", report)
    if answer.status != 201:
        raise RuntimeError(f"An upload was answered with {answer.status}: {answer.body[:500]!r}")
    return answer


def report_of(
    project: str, run: int, commit: int, upload: int, machine: str, cases: list[dict[str, Any]]
) -> dict[str, Any]:
    """A report of some cases at a commit of its own."""

    def sha(number: int) -> str:
        return shape.sha_of(run + number)

    return {
        "format": "pullback-report",
        "version": 1,
        "id": str(UUID(int=random.Random(f"{run} {commit} {upload}").getrandbits(128), version=4)),  # noqa: S311 - a name
        "started_at": "2026-02-01T12:00:00Z",
        "duration_s": 12.5,
        "project": project,
        "commit": {
            "sha": sha(commit), "parents": [sha(commit - 1)], "branch": "main", "author": "an author",
            "authored_at": (shape.FIRST_COMMIT + timedelta(minutes=commit)).isoformat(), "title": f"Change {commit}",
            "dirty": False,
        },
        "machine": {"fingerprint": f"fingerprint of {machine}", "name": machine, "facts": {"cpu": "fast", "cores": 2}},
        "harness": {"version": "0.1", "suite": "quick", "quality": "clean", "preflight": {}, "job": None},
        "cases": cases,
        "comparisons": [],
    }  # fmt: skip


def _case(workload: str, n: int, times: list[list[float]], counts: list[str]) -> dict[str, Any]:
    names = ("unfused", "fused")
    paired = {
        "variant": "fused",
        "baseline": "unfused",
        "metric": "time",
        "log_ratio": -0.5,
        "low": -0.51,
        "high": -0.49,
    }
    return {
        "case": {"workload": workload, "params": {"n": n, "act": "tanh"}, "dtype": "f4", "device": "cpu"},
        "gradient": {"ok": True, "max_rel_error": 1e-7, "oracle": "closed form"},
        "error": None,
        "variants": [
            {
                "variant": name, "kind": "tier", "program_hash": None, "plan": None,
                "metrics": {
                    "time": {"unit": "s", "clock": "cpu", "processes": values},
                    **{metric: {"unit": "B", "value": 4096, "method": "nep49"} for metric in counts},
                },
            }
            for name, values in zip(names, times, strict=True)
        ],
        "paired": [paired | {"n": 20, "outcome": "faster"}],
    }  # fmt: skip


def _large_report(project: str, run: int, commit: int) -> dict[str, Any]:
    times = (
        np.random.default_rng(shape.SEED + commit)
        .lognormal(-9, 0.02, (LARGE_RESULTS // 2, 2, LARGE_PROCESSES))
        .tolist()
    )
    cases = [_case(f"workload {n // 100}", n, values, []) for n, values in enumerate(times)]
    return report_of(project, run, commit, 0, "ci", cases)


def _small_report(project: str, run: int, commit: int, upload: int) -> bytes:
    case = _case(f"workload {upload % 7}", 100, [[1.0, 1.1, 0.9], [0.6, 0.7, 0.5]], ["array_bytes", "peak_bytes"])
    machine = f"ci-{upload % UPLOADS_OF_A_COMMIT}"
    return orjson.dumps(report_of(project, run, commit, upload, machine, [case]))
