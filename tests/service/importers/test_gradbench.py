"""GradBench's logs and its published archive."""

import csv
import gzip
import io
import json
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from pullback_service.errors import InvalidInputError, TooLargeError, UnreadableBodyError
from pullback_service.importers import contents, gradbench

FOLDER = Path(__file__).parents[2] / "data" / "importers" / "gradbench"


def log_of(name):
    return gradbench.read_log(contents.json_lines(gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes())))


def conversation(evaluated, tool, *exchanges):
    """A log as the intermediary writes it: messages and responses in turn."""
    start = {"id": 0, "kind": "start", "eval": evaluated}, {"id": 0, "tool": tool}
    define = {"id": 1, "kind": "define", "module": evaluated}, {"id": 1, "success": True}
    lines = []
    for message, response in (start, define, *exchanges):
        lines.append({"elapsed": {"nanoseconds": len(lines)}, "message": message})
        if response is not None:
            lines.append({"elapsed": {"nanoseconds": len(lines)}, "response": response})
    return b"\n".join(json.dumps(line).encode() for line in lines)


def evaluation(number, module, function, description, *nanoseconds):
    message = {
        "id": number,
        "kind": "evaluate",
        "module": module,
        "function": function,
        "input": [1.0],
        "description": description,
    }
    timings = [{"name": "evaluate", "nanoseconds": each} for each in nanoseconds]
    return message, {"id": number, "success": True, "output": 1.0, "timings": timings}


def test_a_log_gives_means_for_each_function_and_size_with_the_tool_as_variant(read, sample):
    found = read("gradbench/lstm.jsonl.gz")
    assert found.points["lstm[function=objective,l=2,c=64]", "manual", "time"].value == pytest.approx(92181e-9)
    assert found.parts.points[0].method == "mean of runs, as GradBench scores them"
    assert read("gradbench/lstm.jsonl.gz", variant="ours").points.keys() == {
        (label, "ours", metric) for label, _, metric in found.points
    }


def test_the_number_of_runs_is_no_part_of_the_method(read):
    """A tool runs for a time: as many runs as fit, another number tonight than tomorrow."""
    evaluated = [evaluation(2, "lstm", "objective", "l2_c64", *[90_000] * runs) for runs in (37, 38)]
    for _, response in evaluated:
        response["timings"] += [{"name": "build", "nanoseconds": 5}] * len(response["timings"])
    tonight, tomorrow = (read(conversation("lstm", "manual", each)) for each in evaluated)
    methods = [{point.series.metric: point.method for point in each.parts.points} for each in (tonight, tomorrow)]
    assert methods[0] == methods[1] == {"time": "mean of runs, as GradBench scores them", "build_time": "mean"}


@pytest.mark.parametrize("name", sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.jsonl.gz")))
def test_every_recorded_conversation_is_read_whole(read, name):
    log = log_of(name)
    raw = gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes())
    evaluations = [json.loads(line) for line in raw.splitlines() if b'"kind": "evaluate"' in line]
    assert log.outcome == "success"
    assert len(log.evaluations) == len(evaluations)
    assert len(read(f"gradbench/{name}.jsonl.gz").values()) == len(evaluations)


@pytest.mark.parametrize("name", ["gmm_m", "ba", "lstm", "det", "llsq", "particle", "saddle"])
def test_scores_are_those_of_gradbenchs_own_rule(name):
    """`1 / sum of means` of primal and derivative, or `1 / fastest`: worked out anew from the raw lines."""
    raw = gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes())
    means = []
    for line in raw.splitlines():
        timings = json.loads(line).get("response", {}).get("timings", [])
        runs = [timing["nanoseconds"] for timing in timings if timing["name"] == "evaluate"]
        if runs:
            means.append(sum(runs) / len(runs))
    expected = 1e9 / (min(means) if name in gradbench.NESTED else sum(means))
    assert gradbench.score(log_of(name)) == pytest.approx(expected, rel=1e-12)


# Published by GradBench's nightly of 2026-09-29: evals/kmeans/summary.json and evals/particle/summary.json (nanoseconds
# of the tools `manual` and `enzyme`), and their scores in summary.json of the same day.
MANUAL_KMEANS = {
    "k=10,n=1000,d=8": (27010, 45272),
    "k=10,n=1000,d=16": (54981, 79619),
    "k=10,n=10000,d=8": (273365, 615981),
    "k=100,n=1000,d=8": (264989, 373755),
    "k=10,n=10000,d=16": (538289, 838601),
    "k=100,n=1000,d=16": (545556, 642107),
    "k=100,n=10000,d=8": (2682007, 3667604),
    "k=1000,n=1000,d=8": (2602574, 2977782),
    "k=100,n=10000,d=16": (5363236, 6190122),
    "k=1000,n=1000,d=16": (5451589, 5648297),
    "k=1000,n=10000,d=8": (27453212, 30030356),
    "k=1000,n=10000,d=16": (55005380, 58197229),
}
ENZYME_PARTICLE = {"rr": 11640512, "ff": 894765, "fr": 2880380, "rf": 1418461}


def test_a_log_with_published_durations_has_the_published_score():
    exchanges = []
    for size, (primal, derivative) in MANUAL_KMEANS.items():
        exchanges.append(evaluation(len(exchanges) + 2, "kmeans", "cost", size, primal))
        exchanges.append(evaluation(len(exchanges) + 2, "kmeans", "dir", size, derivative))
    log = gradbench.read_log(contents.json_lines(conversation("kmeans", "manual", *exchanges)))
    assert gradbench.score(log) == pytest.approx(4.771700085117109, rel=1e-12)
    nested = [
        evaluation(number, "particle", function, "w=0", duration)
        for number, (function, duration) in enumerate(ENZYME_PARTICLE.items(), 2)
    ]
    log = gradbench.read_log(contents.json_lines(conversation("particle", "enzyme", *nested)))
    assert gradbench.score(log) == pytest.approx(1117.6118869200293, rel=1e-12)


def test_a_wrong_output_is_a_failure_and_not_a_fast_run(read):
    judged = {"id": 3, "kind": "analysis", "of": 2, "valid": False, "error": "off by one"}, {"id": 3}
    found = read(conversation("gmm", "jax", evaluation(2, "gmm", "jacobian", "2_5", 7), judged))
    assert found.points == {}
    assert found.failures == {"gmm[function=jacobian,size=2_5]": "invalid"}
    assert found.report.notes == ("gmm with jax: invalid",)


def test_a_message_without_a_response_is_a_crash(read):
    message, _ = evaluation(2, "gmm", "jacobian", "2_5", 7)
    found = read(conversation("gmm", "jax", (message, None)))
    assert found.failures == {"gmm[function=jacobian,size=2_5]": "no-answer"}
    assert found.report.notes == ("gmm with jax: unfinished",)


def test_a_trimmed_log_without_inputs_and_in_another_order_says_the_same(read, sample):
    raw = gzip.decompress(sample("gradbench/llsq.jsonl.gz"))
    trimmed = []
    for line in raw.splitlines():
        content = json.loads(line)
        for part in content.values():
            part.pop("input", None)
            part.pop("output", None)
        trimmed.append(json.dumps(content, sort_keys=True).encode())
    assert read(b"\n".join(trimmed)).values() == read(raw).values()


def test_complaints_name_the_line(read):
    good = conversation("gmm", "jax", evaluation(2, "gmm", "jacobian", "2_5", 7))
    with pytest.raises(UnreadableBodyError, match="line 7 is not JSON"):
        read(good + b"\n{broken")
    with pytest.raises(InvalidInputError, match=r"line 7: \$\.response follows no message"):
        read(good + b'\n{"response": {"id": 9}}')
    with pytest.raises(InvalidInputError, match=r"line 7: \$\.message\.of is not the id of an earlier evaluation"):
        read(good + b'\n{"message": {"id": 9, "kind": "analysis", "of": 8, "valid": true}}')


def test_of_a_long_line_the_column_is_that_of_the_whole_line():
    line = b'{"a":[' + b"1," * 60_000 + b"x1]}"
    column = line.index(b"x") + 1
    with pytest.raises(UnreadableBodyError, match=rf"line 2 is not JSON: .* at column {column}\.$"):
        list(contents.json_lines(b"{}\n" + line))


def test_a_line_over_the_limit_is_refused_by_name(read, monkeypatch):
    monkeypatch.setattr(contents, "LONGEST_LINE_BYTES", 400)
    with pytest.raises(TooLargeError, match=r"line 5 has .* bytes; the limit is 400 \(LONGEST_LINE_BYTES\)"):
        read(conversation("gmm", "jax", evaluation(2, "gmm", "jacobian", "x" * 500, 7)))


@pytest.mark.long
def test_long_lines_are_read_one_at_a_time():
    """Sixteen lines of 0.4 MB with 10,000 timings each: what is held at once is a line, not the log."""
    many = [40] * 10_000
    log = conversation(
        "gmm", "jax", *(evaluation(number, "gmm", "objective", f"n={number}", *many) for number in range(2, 18))
    )
    assert len(log) > 6_250_000
    tracemalloc.start()
    found = gradbench.read_log(contents.json_lines(log))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [each.runs for each in found.evaluations] == [10_000] * 16
    assert found.evaluations[0].mean_ns == 40
    assert peak < 15_000_000  # a line is about 3 MB of Python objects, all of them would be 50 MB


def test_a_folder_of_logs_is_many_tools_of_many_evals(read, tmp_path):
    for path in ("gmm/jax.jsonl", "run-gmm-zygote/log.jsonl"):
        file = tmp_path / "logs" / path
        file.parent.mkdir(parents=True)
        file.write_bytes(conversation("gmm", None, evaluation(2, "gmm", "jacobian", "2_5", 7)))
    from_folder = read(pack_folder(tmp_path / "logs"))
    assert {variant for _, variant, _ in from_folder.points} == {"jax", "zygote"}
    assert from_folder.parts.measured_cases == 1


def pack_folder(folder):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(folder, arcname="logs")
    return packed.getvalue()


def nightly(summary, **evals):
    """A day of the archive, packed."""
    files = {"summary.json": summary} | {f"evals/{name}/summary.json": content for name, content in evals.items()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            body = json.dumps(content).encode()
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return packed.getvalue()


def test_a_published_day_continues_the_series_of_the_logs(read):
    day = {"version": 1, "date": "2026-09-29", "commit": "2fc32416503359702338ba7eafd9dd0c4a3e9e84", "table": []}
    kmeans = {
        "primal": "cost",
        "derivative": "dir",
        "tools": {
            "manual": {
                size: {"primal": {"secs": 0, "nanos": primal}, "derivative": {"secs": 0, "nanos": derivative}}
                for size, (primal, derivative) in MANUAL_KMEANS.items()
            }
        },
    }
    particle = {"tools": {"enzyme": {key: {"secs": 0, "nanos": value} for key, value in ENZYME_PARTICLE.items()}}}
    found = read(nightly(day, kmeans=kmeans, particle=particle), commit=None)
    assert found.document.commit.sha == day["commit"]
    assert found.document.commit.authored_at.date().isoformat() == "2026-09-29"
    assert len(found.points) == 28
    published = found.points["kmeans[function=dir,k=10,n=1000,d=8]", "manual", "time"]
    logged = read(conversation("kmeans", "manual", evaluation(2, "kmeans", "dir", "k=10,n=1000,d=8", 45272)))
    (point,) = logged.points.values()
    assert point.series == published.series
    assert point.value == pytest.approx(published.value)


def test_tools_that_do_not_get_through_are_failures(read):
    table = [
        {"eval": "gmm", "tools": [{"tool": "finite", "outcome": "timeout"}, {"tool": "x", "outcome": "undefined"}]}
    ]
    empty = {"primal": "objective", "derivative": "jacobian", "tools": {}}
    found = read(nightly({"version": 1, "date": "2026-09-29", "table": table}, gmm=empty))
    assert found.failures == {"gmm": "timeout"}


def test_the_sample_of_the_archive_is_what_it_says():
    with gzip.open(FOLDER / "nightly" / "series.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    assert {row["date"] for row in rows} == {"2025-04-16", "2025-04-17", "2025-04-18", "2025-04-19"}
    assert {row["eval"] for row in rows} == {"gmm", "lse", "ode"}
