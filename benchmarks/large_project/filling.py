"""Filling a database with the large project by COPY, in the order in which uploads would have come."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import UUID

import orjson
import psycopg
from benchmarks.large_project.shape import (
    BASELINE,
    PROJECT,
    SEED,
    MadeCase,
    MadePoint,
    Shape,
    authored_at,
    report_of,
    sha_of,
    title_of,
)
from psycopg import sql

from pullback_service.reports.codecs import packed
from pullback_service.reports.point_rows import COLUMNS
from pullback_service.reports.schemas import FORMAT, VERSION

BRANCH = "main"
_UNKNOWN = b"\\N"

SeriesPoint: TypeAlias = tuple[str, str, str, str, MadePoint]
"""Variant, its kind, metric, its unit, and what was measured."""


def fill(url: str, shape: Shape) -> int:
    """Fill an empty database; the number of points."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")  # foreign keys are right by construction
        connection.execute("SET synchronous_commit = off")
        points = _Filling(connection, shape).fill()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
    return points


class _Filling:
    """One project with the ids of what its points belong to."""

    def __init__(self, connection: psycopg.Connection[Any], shape: Shape) -> None:
        self._connection = connection
        self._shape = shape
        self._case_ids: dict[str, int] = {}

    def fill(self) -> int:
        project = self._id("INSERT INTO project (name) VALUES (%s) RETURNING id", PROJECT)
        machines = [
            self._id(
                "INSERT INTO machine (fingerprint, name, facts) VALUES (%s, %s, %s) RETURNING id",
                f"print of {name}", name, orjson.dumps({"cpu": f"processor of {name}", "cores": 16}).decode(),
            )
            for name in self._shape.machine_names
        ]  # fmt: skip
        self._cases(project)
        series = self._series(project, machines)
        commits = self._commits(project)
        points = 0
        for number, commit in enumerate(commits):
            for place, machine in enumerate(machines):
                if self._shape.measures(place, number):
                    points += self._report(project, number, commit, place, machine, series)
        self._claims(commits, machines[0])
        self._connection.execute(
            "UPDATE project SET reports = s.reports, commits = s.commits, points = s.points, last_report_at = s.last "
            "FROM (SELECT count(*) AS reports, count(DISTINCT commit_id) AS commits, sum(points) AS points, "
            "max(received_at) AS last FROM report WHERE project_id = %s) s WHERE id = %s",
            [project, project],
        )
        return points

    def _cases(self, project: int) -> None:
        self._copy(
            'COPY "case" (project_id, identity, workload, params, dtype, device, label) FROM STDIN',
            (
                _line(project, b"\\\\x" + case.identity.hex().encode(), case.workload, orjson.dumps(case.params), "f4",
                      case.device, case.label)
                for case in self._shape.cases
            ),
        )  # fmt: skip
        rows = self._connection.execute('SELECT label, id FROM "case" WHERE project_id = %s', [project])
        self._case_ids = {label: int(id_) for label, id_ in rows}

    def _series(self, project: int, machines: list[int]) -> dict[tuple[int, int, str, str], int]:
        self._copy(
            "COPY series (project_id, case_id, variant, metric, machine_id, variant_kind, unit, direction, exact) FROM STDIN",
            (
                _line(
                    project,
                    self._case_ids[case.label],
                    variant,
                    metric,
                    machine,
                    kind,
                    unit,
                    "smaller",
                    "t" if exact else "f",
                )
                for place, machine in enumerate(machines)
                for case in self._shape.cases_on(place)
                for variant, kind in self._shape.variants_on(place)
                for metric, unit, exact in self._shape.metrics_on(place)
            ),
        )
        rows = self._connection.execute(
            "SELECT case_id, machine_id, variant, metric, id FROM series WHERE project_id = %s", [project]
        )
        return {(row[0], row[1], row[2], row[3]): int(row[4]) for row in rows}

    def _commits(self, project: int) -> list[int]:
        commits = self._shape.commits
        self._copy(
            "COPY commit (project_id, sha, branch, author, title, authored_at, ordered_at) FROM STDIN",
            (
                _line(project, sha_of(number), BRANCH, "an author", title_of(number, commits), authored_at(number),
                      authored_at(number))
                for number in range(commits)
            ),
        )  # fmt: skip
        rows = self._connection.execute("SELECT id FROM commit WHERE project_id = %s ORDER BY ordered_at", [project])
        ids = [int(row[0]) for row in rows]
        branch = self._id("INSERT INTO branch (project_id, name) VALUES (%s, %s) RETURNING id", project, BRANCH)
        self._copy(
            "COPY commit_parent (commit_id, position, parent_sha) FROM STDIN",
            (_line(ids[number], 0, sha_of(number - 1)) for number in range(1, commits)),
        )
        self._copy(
            "COPY branch_commit (branch_id, position, commit_id, after_gap) FROM STDIN",
            (_line(branch, number, id_, "f") for number, id_ in enumerate(ids)),
        )
        return ids

    def _report(
        self,
        project: int,
        number: int,
        commit: int,
        place: int,
        machine: int,
        series: dict[tuple[int, int, str, str], int],
    ) -> int:
        shape, at, id_ = self._shape, authored_at(number), report_of(number, place)
        quality = "busy" if shape.is_disturbed(place, number) else "clean"
        lines: list[bytes] = []
        failures: list[bytes] = []
        told: list[dict[str, Any]] = []
        for case in shape.cases_on(place):
            case_id = self._case_ids[case.label]
            if not shape.is_measured(case, number):
                continue
            reason = shape.failure(case, number)
            if reason:
                failures.append(_line(id_, case_id, commit, machine, at, _UNKNOWN, "gradient", reason))
                told.append(_failed(case, reason))
                continue
            measured: list[SeriesPoint] = []
            for variant, kind in shape.variants_on(place):
                for metric, unit, _ in shape.metrics_on(place):
                    point = shape.point(case, place, variant, metric, number)
                    if point is not None:
                        head = (series[case_id, machine, variant, metric], _UNKNOWN, commit, id_, at, quality)
                        lines.append(_line(*head, *_ending(point, variant, metric)))
                        measured.append((variant, kind, metric, unit, point))
            told.append(_measured(case, measured))
        body = _body(id_, number, shape.machine_names[place], shape.commits, quality, told)
        self._copy(
            "COPY report (id, project_id, commit_id, machine_id, idempotency_key, digest, body, body_bytes, format, "
            "version, suite, quality, dirty, cases, points, failures, started_at, duration_s, received_at, "
            "followed_up_at) FROM STDIN",
            [
                _line(
                    id_, project, commit, machine, id_, b"\\\\x" + id_.bytes.hex().encode(),
                    b"\\\\x" + packed(body).hex().encode(), len(body), FORMAT, VERSION,
                    _suite(number), quality, "f", len(shape.cases_on(place)), len(lines),
                    len(failures), at, 900.0, at, at,
                )
            ],
        )  # fmt: skip
        self._copy(f"COPY point ({', '.join(COLUMNS)}) FROM STDIN", lines)
        self._copy(
            "COPY failure (report_id, case_id, commit_id, machine_id, ordered_at, variant, kind, message) FROM STDIN",
            failures,
        )
        return len(lines)

    def _claims(self, commits: list[int], machine: int) -> None:
        """Store the comparisons of a session that measured the newest two commits together."""
        newest = len(commits) - 1
        lines = []
        for case in self._shape.cases:
            if case.number % 50 != 20:
                continue
            ratio = 0.031 if case.number % 100 == 20 else -0.06
            lines.append(
                _line(
                    report_of(newest, 0), self._case_ids[case.label], machine, commits[newest - 1], commits[newest], "stateful", "time",
                    ratio, ratio - 0.004, ratio + 0.004, 20, "slower" if ratio > 0 else "faster", 0.005, 0.01, "f",
                )
            )  # fmt: skip
        self._copy(
            "COPY comparison (report_id, case_id, machine_id, reference_id, candidate_id, variant, metric, log_ratio, low, "
            "high, n, outcome, claim, margin, provisional) FROM STDIN",
            lines,
        )

    def _copy(self, command: str, pieces: Iterable[bytes]) -> None:
        with self._connection.cursor() as cursor, cursor.copy(sql.SQL(command)) as copy:
            for piece in pieces:
                copy.write(piece)

    def _id(self, query: str, *values: object) -> int:
        row = self._connection.execute(sql.SQL(query), values).fetchone()
        assert row is not None  # noqa: S101 - just inserted
        return int(row[0])


def _body(
    id_: UUID, number: int, machine: str, commits: int, quality: str, cases: Sequence[Mapping[str, Any]]
) -> bytes:
    """The document whose points these are."""
    return orjson.dumps(
        {
            "format": FORMAT,
            "version": VERSION,
            "id": id_,
            "started_at": authored_at(number),
            "duration_s": 900.0,
            "project": PROJECT,
            "commit": {
                "sha": sha_of(number), "branch": BRANCH, "authored_at": authored_at(number),
                "title": title_of(number, commits), "author": "an author",
            },
            "machine": {"fingerprint": f"print of {machine}", "name": machine, "facts": {"cpu": f"processor of {machine}"}},
            "harness": {"version": "0.1", "suite": _suite(number), "quality": quality},
            "cases": cases,
            "comparisons": [],
        }
    )  # fmt: skip


def _suite(number: int) -> str:
    return "standard" if number % 3 == 0 else "quick"


def _named(case: MadeCase) -> dict[str, Any]:
    return {"workload": case.workload, "params": case.params, "dtype": "f4", "device": case.device}


def _failed(case: MadeCase, reason: str) -> dict[str, Any]:
    """A failed case, in the form of a report."""
    return {"case": _named(case), "error": {"kind": "gradient", "message": reason}, "variants": [], "paired": []}


def _measured(case: MadeCase, measured: Sequence[SeriesPoint]) -> dict[str, Any]:
    """The points of a case, in the form of a report."""
    variants: dict[str, dict[str, Any]] = {}
    paired = []
    for variant, kind, metric, unit, point in measured:
        told = variants.setdefault(variant, {"variant": variant, "kind": kind, "metrics": {}})
        told["metrics"][metric] = (
            {"unit": unit, "clock": "cpu", "processes": _processes(point)}
            if metric == "time"
            else {"unit": unit, "value": point.value, "method": "nep49"}
        )
        if point.log_ratio is not None:
            paired.append(
                {
                    "variant": variant, "baseline": BASELINE, "metric": metric, "log_ratio": point.log_ratio,
                    "low": point.low, "high": point.high, "n": point.groups, "outcome": point.outcome,
                }
            )  # fmt: skip
    gradient = {"ok": True, "max_rel_error": 2.4e-7, "oracle": "closed form"}
    return {"case": _named(case), "gradient": gradient, "variants": list(variants.values()), "paired": paired}


def _processes(point: MadePoint) -> tuple[float, ...]:
    """The process values, whose median is the value."""
    return point.value * 0.99, point.value, point.value * 1.01


def _ending(point: MadePoint, variant: str, metric: str) -> Iterator[object]:
    """The measured columns of a point, in the order of COLUMNS."""
    yield point.value
    yield f"{{{','.join(map(str, _processes(point)))}}}" if metric == "time" else _UNKNOWN
    yield from (_UNKNOWN, _UNKNOWN)  # no count differs from call to call
    yield _UNKNOWN if point.log_ratio is None or variant == BASELINE else BASELINE
    for value in (point.log_ratio, point.low, point.high, point.groups, point.outcome):
        yield _UNKNOWN if value is None else value
    yield "cpu" if metric == "time" else "nep49"
    yield f"{SEED:032x}"


_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _line(*values: object) -> bytes:
    """A line of COPY's text form; bytes are written as they are."""
    return (
        b"\t".join(value if isinstance(value, bytes) else str(value).translate(_ESCAPES).encode() for value in values)
        + b"\n"
    )
