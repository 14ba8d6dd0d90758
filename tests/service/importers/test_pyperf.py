"""pyperf's files."""

import json
from statistics import median

import pytest

from pullback_service.errors import InvalidInputError


def test_each_process_counts_with_its_median_and_calibration_with_nothing(read, sample):
    found = read("pyperf/two-benchmarks.json")
    first = json.loads(sample("pyperf/two-benchmarks.json"))["benchmarks"][0]
    expected = [median(run["values"]) for run in first["runs"] if "values" in run]
    point = found.points["sort a list", "external", "time"]
    assert len(first["runs"]) == len(expected) + 1
    assert point.process_values == pytest.approx(expected, rel=1e-12)
    assert point.value == pytest.approx(median(expected))
    assert (point.series.unit, point.series.direction, point.series.exact) == ("s", "smaller", False)
    assert "2 calibration runs left out" in found.report.notes


def test_bytes_are_memory_and_not_time(read):
    found = read("pyperf/memory.json")
    (point,) = found.points.values()
    assert (point.series.metric, point.series.unit, point.series.exact) == ("memory", "B", False)
    assert point.value > 10_000_000


def test_what_the_file_says_of_its_machine_and_time_is_kept(read):
    document = read("pyperf/two-benchmarks.json", machine=None).document
    assert document.machine.name == "vm"
    assert document.machine.facts["cores"] == 2
    assert document.harness.version == "pyperf 2.10.0"
    assert document.started_at.isoformat().startswith("2026-11-21T08:15:48")


def test_lengths_that_add_up_beyond_reason_are_left_out_and_their_results_are_not(read, sample):
    file = json.loads(sample("pyperf/two-benchmarks.json"))
    for run in file["benchmarks"][0]["runs"]:
        run["metadata"] = {**run.get("metadata", {}), "duration": 1e9}
    assert read(json.dumps(file).encode()).document.duration_s is None
    assert read("pyperf/two-benchmarks.json").document.duration_s > 0


def test_a_name_that_all_share_is_found_at_the_top(read):
    assert read("pyperf/memory.json").values("memory").keys() == {"make a list"}


def test_a_unit_that_pyperf_does_not_know_is_refused_with_its_place(read, sample):
    content = json.loads(sample("pyperf/memory.json"))
    content["metadata"]["unit"] = "furlong"
    with pytest.raises(InvalidInputError, match=r"\$\.benchmarks\[0\] has the unit 'furlong'"):
        read(json.dumps(content).encode())


def test_a_time_below_zero_is_no_time(read, sample):
    file = json.loads(sample("pyperf/two-benchmarks.json"))
    runs = [run for run in file["benchmarks"][0]["runs"] if "values" in run]
    runs[0]["values"] = [-1.0]
    found = read(json.dumps(file).encode())
    assert len(found.points["sort a list", "external", "time"].process_values) == len(runs) - 1
    assert "1 negative time and sizes ignored" in found.report.notes
