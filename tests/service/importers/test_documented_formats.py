"""Formats of hosted services and of Julia: files their own tools made where those run here, else as documented."""

import pytest

from pullback_service.errors import IncompleteRequestError

TWO = "2" * 40
LOAD = (("CPU load[suite=Load]", "value"), ("Backward pass[suite=Load]", "time"))


def test_benchmarktools_gives_times_per_evaluation_memory_and_allocations(read):
    found = read("benchmarktools/groups.json")
    assert found.values() == pytest.approx({"maths/sin": 12.4e-9, "maths/fill": 1250e-9, '("solve", 8)': 2.5e-3})
    assert found.values("memory")["maths/fill"] == 8064
    assert found.values("allocs") == {"maths/sin": 0, "maths/fill": 2, '("solve", 8)': 1}
    assert found.report.notes == ("1 NaN, infinite and out-of-range value ignored",)
    assert found.document.harness.version == "BenchmarkTools.jl 1.6.0"


def test_bencher_needs_unit_and_direction_and_takes_one_for_each_measure(read):
    with pytest.raises(IncompleteRequestError, match="Bencher files do not say the unit and direction of `latency`"):
        read("bencher/measures.json")
    found = read(
        "bencher/measures.json",
        unit="latency:ns,throughput:ops/s",
        direction="latency:smaller,throughput:bigger",
    )
    assert found.values("latency") == pytest.approx({"tape_backward": 88e-9, "plan_backward": 12.5e-9})
    rate = found.points["tape_backward", "external", "throughput"]
    assert (rate.value, rate.series.unit, rate.series.direction) == (5.55, "1/s", "bigger")


def test_conbench_takes_results_and_errors(read):
    found = read("conbench/results.json", commit=None, machine=None)
    assert found.document.commit.sha == "0123456789abcdef0123456789abcdef01234567"
    assert found.document.machine.name == "vm"
    assert found.document.machine.facts["cpu"] == "AMD EPYC"
    times = {
        "sort[n=1000,language=Python]": 4.907000402454287e-06,
        "sort[n=10000,language=Python]": 4.127099964534864e-05,
    }
    assert found.values() == pytest.approx(times)  # the median of three
    rate = found.points["copy", "external", "throughput"]
    assert (rate.series.unit, rate.series.direction) == ("B/s", "bigger")
    assert found.failures == {"write": "error"}


def test_a_custom_benchmark_needs_its_direction(read):
    with pytest.raises(IncompleteRequestError, match="direction=smaller") as refused:
        read("github-action-benchmark/custom.json")
    assert refused.value.status == 400
    assert [error["path"] for error in refused.value.errors] == ["query.direction"]
    found = read("github-action-benchmark/custom.json", direction="smaller")
    assert found.values("value") == {"CPU load": 50}
    assert found.values("time") == {"Backward pass": 0.0125}


def test_a_history_gives_one_commit_with_the_directions_of_its_tools(read):
    with pytest.raises(IncompleteRequestError, match="one of the 2 commits of this history"):
        read("github-action-benchmark/data.js", commit=None)
    found = read("github-action-benchmark/data.js", commit=TWO)
    times = {"bench_fib_10[suite=Rust]": 135e-9, "Backward pass[suite=Load]": 0.0125}
    assert found.values() == pytest.approx(times)
    assert len(found.values("rate")) == 6
    rate = found.points["test_maths.py::test_apply[sin-10][suite=Python]", "external", "rate"]
    assert (rate.value, rate.series.unit, rate.series.direction) == (
        pytest.approx(1035875.84, abs=0.01),
        "1/s",
        "bigger",
    )
    # Its tool says "bigger is better" of everything in a file, of a time in milliseconds, too.
    load = [found.points[case, "external", metric] for case, metric in LOAD]
    assert [point.series.direction for point in load] == ["bigger", "bigger"]
    assert found.document.commit.authored_at.isoformat() == "2026-09-02T08:00:00+00:00"
