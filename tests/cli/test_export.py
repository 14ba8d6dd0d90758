"""`pullback export` writes what a running service knows, whole or not at all."""

import csv
import json
import os
import re
import socket
import subprocess
import sys
import threading

import httpx
import pytest

from pullback_cli.export import ExportKind
from pullback_cli.exporting.address import format_of, parameters
from pullback_cli.exporting.download import opened
from pullback_cli.main import main
from pullback_cli.usage_errors import RefusalError


def document(number):
    return {
        "format": "pullback-report",
        "version": 1,
        "id": f"00000000-0000-0000-0000-{number:012}",
        "started_at": "2026-02-01T12:00:00Z",
        "project": "demo",
        "commit": {"sha": f"{number:040x}", "branch": "main", "authored_at": f"2026-01-0{number}T00:00:00Z"},
        "machine": {"fingerprint": "abc", "name": "box"},
        "harness": {"version": "1"},
        "cases": [
            {
                "case": {"workload": "=cmd()", "params": {"n": 10}, "dtype": "f4", "device": "cpu"},
                "variants": [
                    {
                        "variant": "native",
                        "kind": "tier",
                        "metrics": {"time": {"unit": "s", "processes": [0.5, number]}},
                    }
                ],
            }
        ],
    }


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    with opened(pipe) as file:
        file.write(b"whole")
    reader.join(10)
    assert found == [b"whole"]
    assert pipe.is_fifo()
    with pytest.raises(RefusalError, match="cannot be written"), opened(tmp_path) as file:
        pass


@pytest.fixture
def measured(service):
    for number in (1, 2, 3):
        httpx.post(f"{service}/api/v1/reports", json=document(number)).raise_for_status()
    return service


def pullback_export(*arguments, folder, **options):
    command = [sys.executable, "-P", "-m", "pullback_cli", "export", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        **options,
    )


@pytest.fixture
def export(measured, tmp_path, monkeypatch, capfd):
    """Run the command in a folder, in this process."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setenv("PULLBACK_SERVER", measured)
        monkeypatch.setattr(sys, "argv", ["pullback", "export", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return subprocess.CompletedProcess(arguments, ended.value.code, *capfd.readouterr())

    return run


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_points_become_a_file_and_nothing_else(measured, tmp_path):
    (tmp_path / "times.csv").write_text("what was there before")
    done = pullback_export(
        "points", "--project", "demo", "--last", 2, "-o", "times.csv", "--server", measured, folder=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert names_in(tmp_path) == ["times.csv"]
    with (tmp_path / "times.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["workload"], int(row["commit"], 16), row["unit"], row["machine"]) for row in rows] == [
        ("'=cmd()", 2, "s", "box"),
        ("'=cmd()", 3, "s", "box"),
    ]
    assert done.stdout == f"times.csv: 2 rows, {(tmp_path / 'times.csv').stat().st_size} bytes of csv\n"


@pytest.mark.long
def test_a_pipe_gets_every_kind(export):
    for what, expected in (
        (["series", "--param", "n=10"], 1),
        (["facets"], 9),
        (["points", "--project", "demo", "--raw", "--from", f"{2:040x}"], 2),
        (["matrix", "--project", "demo", "--branch", "main"], 1),
        (["comparison", "--project", "demo", "--base", f"{1:040x}", "--head", "main"], 1),
        (["commits", "--project", "demo", "--branch", "main"], 3),
        (["reports", "--project", "demo", "--commit", f"{2:040x}"], 1),
        (["jobs", "--state", "queued", "--kind", "run", "--machine", 1, "--awaiting-approval"], 0),
        (["facts", "--machine", 1], 0),
        (["machines"], 1),
        (["audit", "--project", "demo"], 3),
    ):
        done = export(*what, "--format", "json")
        assert done.returncode == 0, done.stderr
        assert len([json.loads(line) for line in done.stdout.splitlines()]) == expected, what


def test_parquet_by_the_files_name(measured, tmp_path):
    arrow = pytest.importorskip("pyarrow.parquet", reason="NO PARQUET TESTS: pip install 'pullback[parquet]'")
    done = pullback_export("series", "-o", "all.parquet", "--server", measured, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert arrow.read_table(tmp_path / "all.parquet").to_pylist()[0]["workload"] == "=cmd()"


def test_what_does_not_hold_is_one_sentence_and_leaves_the_file_alone(export, tmp_path):
    (tmp_path / "out.csv").write_text("before")
    for arguments, said in (
        (["points", "--project", "nothing", "-o", "out.csv"], "There is no project 'nothing'"),
        (["series", "-o", "out.xlsx"], "the format of out.xlsx is unknown"),
        (["series", "-o", "missing/out.csv"], "cannot be written"),
        (["series", "--base", "main"], "--base does not apply to series: it is for comparison"),
        (["comparison", "--project", "demo"], "comparison needs --head"),
        (["facts"], "facts needs --machine"),
        (["facts", "--machine", "box"], "machine_id"),
        (["jobs", "--machine", "1", "--machine", "2"], "jobs takes one --machine"),
        (["agents", "--state", "queued"], "--state does not apply to agents: it is for jobs"),
        (["series", "-o", "out.csv", "--token-file", "none"], "token file"),
        (["series", "-o", "out.csv", "--server", "nowhere"], "is not an address"),
    ):
        done = export(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert said in done.stderr
        assert names_in(tmp_path) == ["out.csv"]
        assert (tmp_path / "out.csv").read_text() == "before"


def test_an_answer_that_is_cut_leaves_nothing(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na,b\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        server = f"http://127.0.0.1:{listening.getsockname()[1]}"
        done = pullback_export("series", "-o", "out.csv", "--server", server, folder=tmp_path)
        thread.join()
    assert done.returncode == 75
    assert "closed the connection early" in done.stderr
    assert "nothing was written" in done.stderr
    assert names_in(tmp_path) == []


def test_the_address_says_what_was_asked_for():
    given = {"project": "demo", "workload": ["a", "b"], "q": None, "last": 5, "raw": True, "merge_base": False}
    assert parameters("points", given) == [
        ("project", "demo"),
        ("workload", "a"),
        ("workload", "b"),
        ("last", "5"),
        ("raw", "true"),
    ]
    with pytest.raises(RefusalError, match="one --metric"):
        parameters("matrix", {"project": "demo", "metric": ["time", "array_bytes"]})


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [("a.csv", None, "csv"), ("a.jsonl", None, "json"), ("a.PARQUET", None, "parquet"), ("a.txt", "csv", "csv")],
)
def test_the_format_is_in_the_name_or_said(tmp_path, name, said, expected):
    assert format_of(tmp_path / name, said) == expected
    assert format_of(None, None) == "csv"


def test_the_help_keeps_the_names_of_what_there_is_in_one_piece(tmp_path):
    narrow = {"env": {**os.environ, "COLUMNS": "80", "TERM": "dumb"}, "capture_output": True, "text": True}
    told = subprocess.run([sys.executable, "-m", "pullback_cli", "export", "--help"], check=True, **narrow)
    for name in ExportKind:
        assert re.search(rf"\b{name}\b", told.stdout.partition("Arguments")[2]), name
    refused = subprocess.run([sys.executable, "-m", "pullback_cli", "export", "nonsense"], check=False, **narrow)
    assert refused.returncode == 2
    assert "'nonsense' is not one of points, series" in refused.stderr
