"""The large made project: its reports hold what its points say, and ending the program ends its Postgres."""

import signal
import subprocess
import sys
import time

import orjson
import psycopg
import pytest
from benchmarks.large_project.filling import fill
from benchmarks.large_project.shape import Shape

from pullback_service.errors import PostgresError
from pullback_service.postgres import EmbeddedPostgres
from pullback_service.reports.codecs import unpacked
from pullback_service.reports.parsing import read_report

SMALL = Shape(workloads=12, machines=2, commits=3)
_POINTS = """
SELECT c.workload, c.params ->> 'n', s.variant, s.metric, p.value, p.process_values, p.log_ratio, p.outcome
FROM point p JOIN series s ON s.id = p.series_id JOIN "case" c ON c.id = s.case_id WHERE p.report_id = %s
"""


def told(document):
    """What a report says, as rows of points."""
    for entry in document["cases"]:
        case = entry["case"]
        pairs = {(pair["variant"], pair["metric"]): pair for pair in entry["paired"]}
        for variant in entry["variants"]:
            for name, metric in variant["metrics"].items():
                pair = pairs.get((variant["variant"], name), {})
                processes = metric.get("processes")
                value = sorted(processes)[len(processes) // 2] if processes else metric["value"]
                yield (
                    case["workload"], str(case["params"]["n"]), variant["variant"], name, value, processes,
                    pair.get("log_ratio"), pair.get("outcome"),
                )  # fmt: skip


def test_reports_hold_the_cases_that_their_points_say(database_url):
    fill(database_url, SMALL)
    with psycopg.connect(database_url) as connection:
        reports = connection.execute("SELECT id, body, body_bytes, cases, failures FROM report").fetchall()
        failures = 0
        for id_, body, size, cases, failed in reports:
            file = unpacked(body)
            document = orjson.loads(file)
            points = connection.execute(_POINTS, [id_]).fetchall()
            assert points
            assert sorted(told(document), key=repr) == sorted(points, key=repr)
            assert (len(file), sum("error" in entry for entry in document["cases"])) == (size, failed)
            assert len(document["cases"]) <= cases
            failures += failed
            # One workload has a name that uploads may not have; of everything else they may be uploads.
            read_report(file.replace("\N{RIGHT-TO-LEFT OVERRIDE}".encode(), b""))
    assert len(reports) > 3
    assert failures


@pytest.mark.long
@pytest.mark.parametrize("when", ["it fills", "it serves"])
def test_a_program_that_is_ended_takes_its_postgres_along(tmp_path, when):
    options = (
        ("--workloads", "300", "--commits", "200") if when == "it fills" else ("--workloads", "5", "--commits", "2")
    )
    command = (sys.executable, "-m", "benchmarks.large_project", "--folder", tmp_path, "--port", "0", *options)
    server = EmbeddedPostgres(tmp_path / "postgres")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            if when == "it serves":
                assert "points" in program.stdout.readline()
                assert "http" in program.stdout.readline()
            else:
                wait_for_filling(server)
            assert server.is_running()
            program.send_signal(signal.SIGTERM)
            assert program.wait(60) == 128 + signal.SIGTERM
        finally:
            program.kill()
            program.wait()
            left = server.is_running()
            server.stop()
    assert not left


def wait_for_filling(server):
    """Until the tables are there and something is written into one of them."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.1)
        try:
            with psycopg.connect(server.url(), connect_timeout=5) as connection:
                row = connection.execute("SELECT count(*) FROM pg_stat_progress_copy").fetchone()
        except (psycopg.Error, PostgresError, UnicodeError):  # not there yet, or its address is half written
            continue
        if row[0]:
            return
    raise AssertionError("nothing was copied within a minute")
