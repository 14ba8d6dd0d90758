"""Filling a database with points by COPY, a block of commits in one transaction.

A fill that was interrupted goes on after the last block that is whole; one that asks for more points than are there adds
them. Foreign keys are not checked while filling (`session_replication_role`), the indexes are kept up as in real life:
points arrive commit by commit, so that those of one series lie scattered over the table.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import orjson
import psycopg
from benchmarks.service_load import shape
from numpy.typing import NDArray
from psycopg import sql

from pullback_service.reports.codecs import packed
from pullback_service.reports.point_rows import COLUMNS
from pullback_service.reports.schemas import FORMAT, VERSION

COMMITS_IN_A_BLOCK = 50
NULL = b"\\N"


def fill(url: str, points: int) -> Iterator[tuple[int, int]]:
    """Fill up to about so many points; yields commits done and commits wanted as it goes."""
    wanted = shape.commits_for(points)
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET synchronous_commit = off")
        filled = _FilledProject(connection)
        done = filled.commits_done()
        yield done, wanted
        for block in shape.blocks(wanted, COMMITS_IN_A_BLOCK):
            if block.stop <= done:
                continue
            with connection.transaction():
                filled.add(range(max(done, block.start), block.stop))
            yield block.stop, wanted


class _FilledProject:
    """The project being filled, with the ids of what its points belong to."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        with connection.transaction():
            self.project = self._make_project()
            self.machines = [self._make_machine(name) for name in shape.MACHINES]
            self.series = self._make_series()

    def commits_done(self) -> int:
        """Whole commits, from the first on."""
        return self._one("SELECT count(*) FROM commit WHERE project_id = %s", self.project)

    def add(self, block: range) -> None:
        """Commits with their reports and points."""
        ids = self._add_commits(block)
        self._copy(
            "COPY report (id, project_id, commit_id, machine_id, idempotency_key, digest, body, body_bytes, format, "
            "version, suite, quality, dirty, cases, points, failures, started_at, duration_s, received_at, "
            "followed_up_at, detected_at) FROM STDIN",
            self._reports(block, ids),
        )
        self._copy(
            f"COPY point ({', '.join(COLUMNS)}) FROM STDIN",
            (line for number in block for line in self._points(number, ids[number])),
        )
        self._connection.execute(
            "UPDATE project SET reports = s.reports, commits = s.commits, points = s.points, last_report_at = s.last "
            "FROM (SELECT count(*) AS reports, count(DISTINCT commit_id) AS commits, sum(points) AS points, "
            "max(received_at) AS last FROM report WHERE project_id = %s) s WHERE id = %s",
            [self.project, self.project],
        )

    def _make_project(self) -> int:
        self._connection.execute("INSERT INTO project (name) VALUES (%s) ON CONFLICT DO NOTHING", [shape.PROJECT])
        return self._one("SELECT id FROM project WHERE name = %s", shape.PROJECT)

    def _make_machine(self, name: str) -> int:
        facts = orjson.dumps({"cpu": f"processor of {name}", "cores": 16}).decode()
        self._connection.execute(
            "INSERT INTO machine (fingerprint, name, facts) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            [shape.fingerprint_of(name), name, facts],
        )
        return self._one("SELECT id FROM machine WHERE fingerprint = %s", shape.fingerprint_of(name))

    def _make_series(self) -> dict[int, list[int]]:
        """Ids of the series of each machine: case by case, variant by variant, metric by metric."""
        found = {}
        for machine in self.machines:
            found[machine] = [
                self._make_one_series(self._make_case(case), machine, variant, metric)
                for case in shape.load_cases()
                for variant in shape.VARIANTS
                for metric in shape.METRICS
            ]
        return found

    def _make_case(self, case: shape.LoadedCase) -> int:
        self._connection.execute(
            'INSERT INTO "case" (project_id, identity, workload, params, dtype, device, label) '
            "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [self.project, case.identity, case.workload, orjson.dumps(case.params).decode(), case.dtype, case.device,
             case.label],
        )  # fmt: skip
        return self._one('SELECT id FROM "case" WHERE project_id = %s AND identity = %s', self.project, case.identity)

    def _make_one_series(self, case: int, machine: int, variant: tuple[str, str], metric: shape.Metric) -> int:
        key = (case, variant[0], metric.name, machine)
        self._connection.execute(
            "INSERT INTO series (project_id, case_id, variant, metric, machine_id, variant_kind, unit, direction, exact) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, 'smaller', %s) ON CONFLICT DO NOTHING",
            [self.project, *key, variant[1], metric.unit, metric.exact],
        )
        return self._one(
            "SELECT id FROM series WHERE case_id = %s AND variant = %s AND metric = %s AND machine_id = %s", *key
        )

    def _add_commits(self, block: range) -> dict[int, int]:
        self._copy(
            "COPY commit (project_id, sha, branch, author, title, authored_at, ordered_at) FROM STDIN",
            (_line(self.project, shape.sha_of(number), shape.BRANCH, "an author", f"Change {number}",
                   shape.authored_at(number), shape.authored_at(number)) for number in block),
        )  # fmt: skip
        rows = self._connection.execute(
            "SELECT sha, id FROM commit WHERE project_id = %s AND ordered_at BETWEEN %s AND %s",
            [self.project, shape.authored_at(block.start), shape.authored_at(block.stop - 1)],
        )
        by_sha = {sha: int(id_) for sha, id_ in rows}
        ids = {number: by_sha[shape.sha_of(number)] for number in block}
        self._copy(
            "COPY commit_parent (commit_id, position, parent_sha) FROM STDIN",
            (_line(ids[number], 0, shape.sha_of(number - 1)) for number in block if number),
        )
        self._connection.execute(
            "INSERT INTO branch (project_id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING", [self.project, shape.BRANCH]
        )
        branch = self._one("SELECT id FROM branch WHERE project_id = %s AND name = %s", self.project, shape.BRANCH)
        self._copy(
            "COPY branch_commit (branch_id, position, commit_id, after_gap) FROM STDIN",
            (_line(branch, number, ids[number], "f") for number in block),
        )
        return ids

    def _reports(self, block: range, commits: dict[int, int]) -> Iterator[bytes]:
        cases = len(shape.load_cases())
        for number in block:
            for place, machine in enumerate(self.machines):
                at = shape.authored_at(number)
                id_ = shape.report_id_of(number, place)
                body = _small_body(number, shape.MACHINES[place], id_, at)
                stored = packed(body)
                yield _line(
                    id_, self.project, commits[number], machine, id_, b"\\\\x" + id_.bytes.hex().encode(),
                    b"\\\\x" + stored.hex().encode(), len(body), FORMAT, VERSION, "standard", "clean", "f", cases,
                    len(self.series[machine]), 0, at, 900.0, at, at, at,
                )  # fmt: skip

    def _points(self, number: int, commit: int) -> Iterator[bytes]:
        at = shape.authored_at(number).isoformat().encode()
        for place, machine in enumerate(self.machines):
            report = str(shape.report_id_of(number, place)).encode()
            middle = b"\t%b\t%d\t%b\t%b\tclean\t" % (NULL, commit, report, at)
            endings = _endings(number, place)
            yield b"".join(
                b"%d%b%b\n" % (id_, middle, ending) for id_, ending in zip(self.series[machine], endings, strict=True)
            )

    def _copy(self, command: str, pieces: Iterable[bytes]) -> None:
        with self._connection.cursor() as cursor, cursor.copy(sql.SQL(command)) as copy:
            for piece in pieces:
                copy.write(piece)

    def _one(self, query: str, *values: object) -> int:
        row = self._connection.execute(sql.SQL(query), values).fetchone()
        assert row is not None  # noqa: S101 - just inserted
        return int(row[0])


def _endings(number: int, machine: int) -> list[bytes]:
    """The measured columns of every point of a report, in the order of the series."""
    random = np.random.default_rng([shape.SEED, number, machine])
    cases, variants = len(shape.load_cases()), len(shape.VARIANTS)
    factors = np.array([1.0, 0.55, 0.4, 0.2, 0.9])  # of the variants
    level = 1e-4 * (1 + np.arange(cases))[:, None] * factors * (1 + 0.1 * machine)
    times = level[..., None] * np.exp(random.normal(0, 0.02, (cases, variants, shape.PROCESSES)))
    ratios = np.log(factors) + random.normal(0, 0.004, (cases, variants))
    steps = 1 + number // 700  # counts change now and then
    counts = np.round(1e6 * (1 + np.arange(cases))[:, None] * factors).astype(np.int64) // steps
    return list(_lines_of_cases(times, ratios, counts))


def _lines_of_cases(
    times: NDArray[np.float64], ratios: NDArray[np.float64], counts: NDArray[np.int64]
) -> Iterator[bytes]:
    medians = np.median(times, axis=2)
    for case in range(times.shape[0]):
        for variant, (name, _) in enumerate(shape.VARIANTS):
            processes = orjson.dumps(times[case, variant], option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
            middle = ratios[case, variant]
            program = b"%032x" % (case * 8 + variant)
            paired = (
                b"\\N\t\\N\t\\N\t\\N\t\\N\t\\N"
                if name == shape.BASELINE
                else b"unfused\t%r\t%r\t%r\t20\tfaster" % (float(middle), float(middle - 0.004), float(middle + 0.004))
            )
            yield b"%r\t{%b}\t\\N\t\\N\t%b\tcpu\t%b" % (float(medians[case, variant]), processes, paired, program)
            count = int(counts[case, variant])
            for metric in range(1, len(shape.METRICS)):
                value = count >> (3 * metric)
                against = paired if name == shape.BASELINE else b"unfused\t%r\t\\N\t\\N\t\\N\tless" % (float(middle),)
                yield b"%d\t\\N\t\\N\t\\N\t%b\tnep49\t%b" % (value, against, program)


def _small_body(number: int, machine: str, report: UUID, at: datetime) -> bytes:
    """A document that holds, without the cases: what a body says is in the points already."""
    return orjson.dumps(
        {
            "format": FORMAT,
            "version": VERSION,
            "id": report,
            "started_at": at,
            "project": shape.PROJECT,
            "commit": {"sha": shape.sha_of(number), "branch": shape.BRANCH, "authored_at": at},
            "machine": {"fingerprint": shape.fingerprint_of(machine), "name": machine},
            "harness": {"version": "0.1", "suite": "standard"},
            "cases": [],
        }
    )


def _line(*values: object) -> bytes:
    return b"\t".join(value if isinstance(value, bytes) else str(value).encode() for value in values) + b"\n"


def vacuum(url: str) -> None:
    """Do in advance the work of autovacuum, statistics and the visibility map, and that of the next checkpoint.

    Else they would do it while something is measured: autovacuum begins a minute after the last row was written.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def facts(url: str) -> Sequence[tuple[str, int, int]]:
    """Tables with their rows (as estimated) and bytes with indexes, largest first."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, reltuples::bigint, pg_total_relation_size(oid) FROM pg_class "
            "WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace ORDER BY 3 DESC LIMIT 5"
        ).fetchall()
    return [(str(name), int(count), int(size)) for name, count, size in rows]
