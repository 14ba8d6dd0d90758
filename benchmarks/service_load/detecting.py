"""Detection at ten million points: how soon changes are looked for, what that costs, and what it leaves to uploads."""

import time
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import numpy as np
import orjson
import psycopg
from benchmarks.service_load import shape
from benchmarks.service_load.calling import Connection
from benchmarks.service_load.processes import ProcessorSeconds, Service
from benchmarks.service_load.thresholds import Figure, Percentiles
from benchmarks.service_load.turns import ask_in_turns
from benchmarks.service_load.uploading import post_small

from pullback_service.rule_version import RULE

LOOKED_AT = 300
"""The newest readings of a series, which the detector may look at."""
INCIDENTS = 10_000
SMALL_UPLOADS = 3_000
PATIENCE_S = 900.0
LOOK_EVERY_S = 0.02
FACTORS = dict(zip((name for name, _ in shape.VARIANTS), (1.0, 0.55, 0.4, 0.2, 0.9), strict=True))


def detect_everything(service: Service, url: str) -> Iterator[Figure]:
    """Whole commits, small uploads and late reports of the filled project, and ten thousand incidents of one of its own."""
    with psycopg.connect(url, autocommit=True) as database:
        load = _Load(service, database)
        load.prepare()
        yield from load.whole_commits()
        yield from load.small_uploads()
        yield from load.late_reports()
        yield from _beside_uploads(service, database)
        yield from _many_incidents(service, database)


class _Load:
    """The filled project, at whose trunk commits are added."""

    def __init__(self, service: Service, database: "psycopg.Connection[Any]") -> None:
        assert service.worker is not None  # noqa: S101 - it is what is measured
        self._service, self._database, self._worker = service, database, service.worker
        self._connection = service.connect()
        self._next = _one(
            database,
            "SELECT count(*) FROM commit JOIN project ON project.id = project_id WHERE name = %s",
            shape.PROJECT,
        )

    def prepare(self) -> None:
        """Bring detection to where it would be had it looked at every upload: the history is looked at, states are stored.

        Filled readings name no harness. The newest get that of the reports here, so that they are of one level.
        """
        self._database.execute("UPDATE report SET detected_at = now() WHERE detected_at IS NULL")
        self._upload_commit([0], cases=slice(1), metrics=shape.METRICS[:1])
        self._database.execute(
            """
            UPDATE reading SET measured_id = (
                   SELECT max(measured_id) FROM reading JOIN commit ON commit.id = commit_id WHERE commit.sha = %(sha)s)
              FROM series
             WHERE series.id = series_id AND NOT exact AND reading.ordered_at >= %(since)s AND measured_id IS NULL
            """,
            {"sha": shape.sha_of(self._next - 1), "since": shape.authored_at(max(self._next - LOOKED_AT - 50, 0))},
        )
        self._database.execute("DELETE FROM series_state")
        self._upload_commit(range(len(shape.MACHINES)))

    def whole_commits(self, *, rounds: int = 4) -> Iterator[Figure]:
        """Reports of all machines at one commit, which touch every series."""
        measured = [self._upload_commit(range(len(shape.MACHINES))) for _ in range(rounds)]
        yield from _said(
            f"a commit that touches {shape.SERIES:,} series, until its last suspicion",
            measured,
            most_s=10,
            most_cpu_s=4,
        )

    def small_uploads(self, *, rounds: int = 10) -> Iterator[Figure]:
        """Reports of one case, ten series, with nothing else waiting."""
        measured = [self._upload_commit([0], cases=slice(3, 4), metrics=shape.METRICS[:2]) for _ in range(rounds)]
        times = Percentiles.of([seconds for seconds, _ in measured])
        cpu = max(used.worker + used.postgres for _, used in measured)
        yield Figure(
            "a small upload (10 series), until detected", times.most / 1000, "s", most=2,
            note=f"median {times.p50:.0f} ms; CPU of worker + Postgres at most {cpu:.3f} s",
        )  # fmt: skip

    def late_reports(self) -> Iterator[Figure]:
        """Reports of all machines at commits that were measured before, in the middle and where the detector looks."""
        machines = range(len(shape.MACHINES))
        middle = self._upload(self._next // 2, machines)
        yield from _said(f"late reports in the middle, {shape.SERIES:,} series", [middle], most_s=30)
        newer = self._upload(max(self._next - 60, 1), machines)
        yield from _said("… 60 commits before the end", [newer])
        after = self._upload_commit(machines)
        yield from _said("… and the next commit, which processes the later readings", [after])

    def _upload_commit(
        self, machines: Collection[int], *, cases: slice = slice(None), metrics: Sequence[shape.Metric] = shape.METRICS
    ) -> tuple[float, ProcessorSeconds]:
        self._next += 1
        return self._upload(self._next - 1, machines, cases=cases, metrics=metrics)

    def _upload(
        self,
        number: int,
        machines: Collection[int],
        *,
        cases: slice = slice(None),
        metrics: Sequence[shape.Metric] = shape.METRICS,
    ) -> tuple[float, ProcessorSeconds]:
        """Upload reports of machines at one commit while the worker pauses; seconds and processors until they are detected."""
        _wait(self._database, "SELECT NOT EXISTS (SELECT FROM report WHERE detected_at IS NULL)")
        self._worker.suspend()
        try:
            reports = [_post(self._connection, _report(number, place, cases, metrics)) for place in machines]
            before, began = self._service.cpu_s(), time.perf_counter()
        finally:
            self._worker.resume()
        _wait(
            self._database,
            "SELECT NOT EXISTS (SELECT FROM report WHERE id = ANY (%s::uuid[]) AND detected_at IS NULL)",
            reports,
        )
        return time.perf_counter() - began, self._service.cpu_s().since(before)


def _said(
    what: str,
    measured: Sequence[tuple[float, ProcessorSeconds]],
    *,
    most_s: float | None = None,
    most_cpu_s: float | None = None,
) -> Iterator[Figure]:
    seconds = max(seconds for seconds, _ in measured)
    worker, postgres = max((used.worker, used.postgres) for _, used in measured)
    yield Figure(what, seconds, "s", most=most_s, note=", ".join(f"{seconds:.2f}" for seconds, _ in measured))
    yield Figure(
        "… CPU of worker and Postgres", worker + postgres, "s", most=most_cpu_s,
        note=f"worker {worker:.2f} s, Postgres {postgres:.2f} s",
    )  # fmt: skip


def _beside_uploads(
    service: Service, database: "psycopg.Connection[Any]", *, seconds: float = 15.0
) -> Iterator[Figure]:
    """Small uploads with and without detection, in turns; a project whose trunk nobody uploads is not looked at."""
    run = time.time_ns()
    connection = service.connect()
    rates: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(4):
        is_detected = turn % 2 == 1
        project = f"detected-{run}-{turn}"
        connection.post("/api/v1/projects", {"name": project})
        if not is_detected:
            connection.send("PATCH", f"/api/v1/projects/{project}", b'{"trunk": "nowhere"}')
        rates[is_detected].append(post_small(service, project, run + 1_000_000 * turn, seconds=seconds).rate)
        _wait(database, "SELECT NOT EXISTS (SELECT FROM report WHERE detected_at IS NULL)")
    with_it, without = max(rates[True]), max(rates[False])
    yield Figure(
        "small uploads while detection runs, of the rate without it", 100 * with_it / without, "%", least=95,
        note=f"{with_it:.0f} and {without:.0f} a second, the better of two each",
    )  # fmt: skip
    done = post_small(service, f"worked-off-{run}", run + 9_000_000, seconds=60, most=SMALL_UPLOADS)
    began = time.perf_counter()
    _wait(database, "SELECT NOT EXISTS (SELECT FROM report WHERE detected_at IS NULL)")
    yield Figure(
        f"until {len(done.reports):,} small uploads are processed", time.perf_counter() - began, "s", most=120,
        note="from the acknowledgement of the last one",
    )  # fmt: skip


_INCIDENTS = """
WITH machine_of AS (SELECT id FROM machine ORDER BY id LIMIT 1),
     made AS (INSERT INTO project (name) VALUES (%(name)s) RETURNING id),
     commits AS (
     INSERT INTO commit (project_id, sha, branch, title, authored_at, ordered_at, projected, judged_by)
     SELECT made.id, encode(sha256(convert_to(%(name)s || number, 'UTF8')), 'hex')::char(40), 'main', 'Change ' || number,
            now() - make_interval(hours => 10000 - number), now() - make_interval(hours => 10000 - number),
            true, %(rule)s -- as an upload leaves them: pages count commits that are not judged yet
       FROM made, generate_series(0, %(incidents)s) number
     RETURNING id, project_id),
     numbered AS (SELECT id, project_id, row_number() OVER (ORDER BY id) AS place FROM commits),
     cases AS (
     INSERT INTO "case" (project_id, identity, workload, params, dtype, device, label)
     SELECT made.id, convert_to('case ' || number, 'UTF8'), 'workload ' || number, '{}', 'f4', 'cpu', 'workload ' || number || '[f4,cpu]'
       FROM made, generate_series(0, 19) number
     RETURNING id, project_id),
     of_case AS (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM cases),
     series_of AS (
     INSERT INTO series (project_id, case_id, variant, metric, machine_id, variant_kind, unit, direction, exact)
     SELECT project_id, cases.id, 'native', 'array_bytes', machine_of.id, 'tier', 'B', 'smaller', true FROM cases, machine_of
     RETURNING id, case_id),
     incidents AS (
     INSERT INTO incident (project_id, kind, state, seen, reference_id, commit_id)
     SELECT one.project_id, CASE WHEN one.place %% 3 = 0 THEN 'better' ELSE 'worse' END,
            (ARRAY['confirmed', 'resolved', 'likely', 'refuted'])[1 + one.place %% 4], false, before.id, one.id
       FROM numbered one JOIN numbered before ON before.place = one.place - 1
     RETURNING id, project_id, reference_id, commit_id, kind)
INSERT INTO change (project_id, incident_id, case_id, machine_id, series_id, variant, kind, worse, evidence, standing, reference_id,
                    commit_id, log_ratio, before, after)
SELECT incidents.project_id, incidents.id, of_case.id, machine_of.id, series_of.id, 'native', 'step', incidents.kind = 'worse',
       'exact', 'claimed', incidents.reference_id, incidents.commit_id, 0.5, 1000, 1649
  FROM incidents, machine_of, of_case JOIN series_of ON series_of.case_id = of_case.id
 WHERE of_case.place IN (incidents.id %% 20, (incidents.id + 7) %% 20)
"""

# Every second one was judged.
_JUDGED = """
WITH made AS (SELECT incident.* FROM incident JOIN project ON project.id = project_id WHERE name = %s),
     judged AS (
     INSERT INTO verdict (incident_id, actor, verdict)
     SELECT id, 'ada', CASE WHEN id %% 5 = 0 THEN 'noise' ELSE 'real' END FROM made WHERE id %% 2 = 0)
INSERT INTO incident_event (incident_id, event, told)
SELECT id, unnest(CASE state WHEN 'refuted' THEN ARRAY['found', 'confirmed', 'withdrawn']
                             WHEN 'resolved' THEN ARRAY['found', 'confirmed', 'resolved'] ELSE ARRAY['found', state] END), true
  FROM made
"""


def _many_incidents(service: Service, database: "psycopg.Connection[Any]") -> Iterator[Figure]:
    """A list of incidents and one of them, over the API and as pages."""
    name = f"incidents-{time.time_ns()}"
    database.execute(_INCIDENTS, {"name": name, "incidents": INCIDENTS, "rule": RULE})
    database.execute(_JUDGED, [name])
    database.execute("ANALYZE incident, change, incident_event, verdict")
    ids = [
        row[0]
        for row in database.execute(
            "SELECT incident.id FROM incident JOIN project ON project.id = project_id WHERE name = %s", [name]
        )
    ]
    api, page = f"/api/v1/incidents?project={name}", f"/projects/{name}/incidents"
    states = ("confirmed", "resolved", "likely")
    yield from ask_in_turns(
        service,
        {
            f"list of {len(ids):,} incidents": lambda chance: f"{api}&state={chance.choice(states)}&limit=100",
            "one incident": lambda chance: f"/api/v1/incidents/{chance.choice(ids)}",
            "accuracy of a project": lambda _: f"/api/v1/incidents/accuracy?project={name}",
        },
        most_ms=50,
    )
    yield from ask_in_turns(
        service,
        {
            "page of incidents": lambda chance: f"{page}?state={quote(chance.choice(states))}",
            "page of one incident": lambda chance: f"{page}/{chance.choice(ids)}",
        },
        most_ms=80,
    )
    database.execute("DELETE FROM project WHERE name = %s", [name])


def _report(number: int, place: int, cases: slice, metrics: Sequence[shape.Metric]) -> bytes:
    """The report of a machine at a commit of the filled project, of some of its cases and metrics."""
    chance = np.random.default_rng([shape.SEED, number, place, time.time_ns() % 2**32])
    machine = shape.MACHINES[place]
    return orjson.dumps(
        {
            "format": "pullback-report",
            "version": 1,
            "id": str(uuid4()),
            "started_at": (shape.authored_at(number) + timedelta(minutes=1)).isoformat(),
            "duration_s": 900.0,
            "project": shape.PROJECT,
            "commit": {
                "sha": shape.sha_of(number), "parents": [shape.sha_of(number - 1)], "branch": shape.BRANCH,
                "author": "an author", "authored_at": shape.authored_at(number).isoformat(), "title": f"Change {number}",
                "dirty": False,
            },
            "machine": {
                "fingerprint": shape.fingerprint_of(machine), "name": machine,
                "facts": {"cpu": f"processor of {machine}", "cores": 16},
            },
            "harness": {
                "version": "0.1", "suite": "standard", "quality": "clean", "preflight": {}, "job": None,
                "partial": cases != slice(None) or len(metrics) < len(shape.METRICS),
            },
            "cases": [
                _case(case, index, number, place, metrics, chance)
                for index, case in [*enumerate(shape.load_cases())][cases]
            ],
            "comparisons": [],
        }
    )  # fmt: skip


def _case(
    case: shape.LoadedCase,
    index: int,
    number: int,
    place: int,
    metrics: Sequence[shape.Metric],
    chance: np.random.Generator,
) -> dict[str, Any]:
    """Times, ratios and counts as the fill makes them."""
    variants, paired = [], []
    for name, kind in shape.VARIANTS:
        level = 1e-4 * (1 + index) * FACTORS[name] * (1 + 0.1 * place)
        count = round(1e6 * (1 + index) * FACTORS[name]) // (1 + number // 700)
        measured = {
            "time": {
                "unit": "s",
                "clock": "cpu",
                "processes": (level * np.exp(chance.normal(0, 0.02, shape.PROCESSES))).tolist(),
            },
            **{
                metric.name: {
                    "unit": metric.unit,
                    "value": count >> (3 * shape.METRICS.index(metric)),
                    "method": metric.method,
                }
                for metric in metrics
                if metric.exact
            },
        }
        variants.append({"variant": name, "kind": kind, "program_hash": None, "plan": None, "metrics": measured})
        if name != shape.BASELINE:
            ratio = float(np.log(FACTORS[name]) + chance.normal(0, 0.004))
            paired.append(
                {
                    "variant": name, "baseline": shape.BASELINE, "metric": "time", "log_ratio": ratio, "low": ratio - 0.004,
                    "high": ratio + 0.004, "n": 20, "outcome": "faster",
                }
            )  # fmt: skip
    return {
        "case": {"workload": case.workload, "params": case.params, "dtype": case.dtype, "device": case.device},
        "gradient": {"ok": True, "max_rel_error": 1e-7, "oracle": "closed form"},
        "error": None,
        "variants": variants,
        "paired": paired,
    }


def _post(connection: Connection, report: bytes) -> str:
    answer = connection.send("POST", "/api/v1/reports", report)
    if answer.status != 201:
        raise RuntimeError(f"An upload was answered with {answer.status}: {answer.body[:500]!r}")
    return str(answer.json()["id"])


def _wait(database: "psycopg.Connection[Any]", is_done: str, *values: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if _one(database, is_done, *values):
            return
        time.sleep(LOOK_EVERY_S)
    raise TimeoutError(f"Detection was not done after {PATIENCE_S:g} s: {is_done}")


def _one(database: "psycopg.Connection[Any]", query: str, *values: object) -> int:
    row = database.execute(query, list(values)).fetchone()
    assert row is not None  # noqa: S101 - these always answer
    return int(row[0])
