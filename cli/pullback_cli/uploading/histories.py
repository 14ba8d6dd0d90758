"""Histories that other tools keep, cut into one upload per commit or day, oldest first where the file is."""

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from pullback_cli.uploading.request_bodies import packed, packed_folder
from pullback_cli.usage_errors import RefusalError

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class HistoryPart:
    """One upload of a history, and what has to be said beside it."""

    name: str
    body: bytes
    said: Mapping[str, str] = field(default_factory=dict)


def pieces_of(path: Path) -> Iterator[HistoryPart]:
    """The uploads of a history; refused where there is none."""
    if not path.exists():
        raise RefusalError(f"{path} does not exist; name asv's folder, a data.js, or a GradBench archive")
    if path.is_file():
        return _of_data_js(path)
    if (path / "commits.csv").is_file():
        return _of_nightly_tables(path)
    days = sorted(each.parent for each in path.glob("*/summary.json") if (each.parent / "evals").is_dir())
    if days:
        return (HistoryPart(day.name, packed_folder(day, sorted(day.rglob("summary.json")))) for day in days)
    return _of_asv(path)


def _of_data_js(path: Path) -> Iterator[HistoryPart]:
    """github-action-benchmark's history: the whole file for each of its commits."""
    from pullback_service.importers import github_action_benchmark
    from pullback_service.importers.contents import Source

    content = path.read_bytes()
    source = Source.of(content)
    if not github_action_benchmark.is_history(source):
        raise RefusalError(f"{path} is not a history; send the results of one run with `pullback upload`")
    body = gzip.compress(content, mtime=0)
    for sha in github_action_benchmark.commits_of(source):
        yield HistoryPart(sha[:10], body, {"commit": sha, "format": "github-action-benchmark"})


def _of_asv(folder: Path) -> Iterator[HistoryPart]:
    """Asv's folder `results`: for each machine and commit its files, and the description of the benchmarks."""
    results = sorted(each for each in folder.rglob("*-*.json") if each.name not in {"machine.json", "benchmarks.json"})
    shared = sorted(each for each in folder.glob("**/benchmarks.json") if each.is_file())
    keyed = sorted((each.parent, _commit_of(each), each) for each in results)
    if not any(sha for _, sha, _ in keyed):
        raise RefusalError(
            f"{folder} holds no known history; name asv's folder `results`, a data.js, or a GradBench archive"
        )
    for (machine, sha), group in groupby(keyed, key=itemgetter(0, 1)):
        if sha:
            files = [each for _, _, each in group]
            yield HistoryPart(
                f"{machine.name} at {sha[:10]}",
                packed_folder(folder, [*shared, *files]),
                {"commit": sha, "format": "asv"},
            )


def _commit_of(file: Path) -> str:
    try:
        content = json.loads(file.read_bytes())
    except ValueError:
        return ""
    sha = content.get("commit_hash") if isinstance(content, dict) else None
    return sha if isinstance(sha, str) else ""


def _of_nightly_tables(folder: Path) -> Iterator[HistoryPart]:
    """GradBench's nightlies as two tables: each day as the archive would have published it."""
    with (folder / "commits.csv").open(newline="") as file:
        commits = {row["date"]: row["commit"] for row in csv.DictReader(file)}
    days: dict[str, dict[str, Any]] = {}
    for row in _durations(folder):
        evals = days.setdefault(row["date"], {})
        summary = evals.setdefault(row["eval"], {**_functions(row["eval"]), "tools": {}})
        workload = summary["tools"].setdefault(row["tool"], {}).setdefault(row["workload"], {})
        seconds, nanoseconds = divmod(round(float(row["seconds"]) * _NANOSECONDS), _NANOSECONDS)
        workload[row["part"]] = {"secs": seconds, "nanos": nanoseconds}
    for date, evals in sorted(days.items()):
        if not commits.get(date):
            continue  # the archive of that day does not say what was measured
        about: dict[str, Any] = {"version": 1, "date": date, "commit": commits[date], "table": []}
        files = {"summary.json": about, **{f"evals/{name}/summary.json": evals[name] for name in sorted(evals)}}
        yield HistoryPart(date, packed({name: json.dumps(content).encode() for name, content in files.items()}))


def _durations(folder: Path) -> Iterator[dict[str, str]]:
    packed_table, plain = folder / "series.csv.gz", folder / "series.csv"
    try:
        text = gzip.decompress(packed_table.read_bytes()) if packed_table.exists() else plain.read_bytes()
    except (OSError, EOFError) as error:
        raise RefusalError(f"{folder} has a commits.csv but no readable series.csv.gz beside it") from error
    yield from csv.DictReader(io.StringIO(text.decode(), newline=""))


def _functions(evaluated: str) -> dict[str, str]:
    from pullback_service.importers.gradbench import CLASSIC

    primal, derivative = CLASSIC.get(evaluated, ("primal", "derivative"))
    return {"primal": primal, "derivative": derivative}
