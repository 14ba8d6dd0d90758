"""The file a report travels in: pyperf's own format, with the report beside pyperf's benchmarks.

`python -m pyperf stats|hist|compare_to FILE` read the times; bytes, counts and pairs, which pyperf cannot hold, are in the
report under the key `pullback`, which pyperf ignores.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import pyperf

from pullback_runners.report.files import write_text
from pullback_runners.workloads import Case

KEY = "pullback"

_TIMERS = {"cpu": "process CPU time", "wall": "wall clock"}


def write_report(report: dict[str, Any], path: Path) -> None:
    """Write a report with pyperf's benchmarks beside it."""
    content = {**_pyperf_document(report), KEY: report}
    write_text(json.dumps(content, separators=(",", ":")) + "\n", path)


def _pyperf_document(report: dict[str, Any]) -> dict[str, Any]:
    """Every variant's time as a benchmark of pyperf: one run a process, one value a slice."""
    environment = {
        name: value
        for name, value in pyperf.Run([1.0], collect_metadata=True).get_metadata().items()
        # These are of this moment and this process, not of the measurement.
        if name not in {"date", "duration", "mem_max_rss", "mem_peak_pagefile_usage", "runnable_threads"}
    }
    benchmarks = [
        pyperf.Benchmark(
            [
                pyperf.Run(
                    slices,
                    metadata={
                        **environment,
                        "name": f"{Case.of_document(case['case']).name} {variant['variant']}",
                        "unit": "second",
                        "loops": calls,
                        "timer": _TIMERS[time["clock"]],
                    },
                    collect_metadata=False,
                )
                for slices, calls in zip(time["slices"], time["calls"], strict=True)
            ]
        )
        for case in report["cases"]
        for variant in case["variants"]
        if (time := variant["metrics"].get("time")) is not None and time["slices"]
    ]
    if not benchmarks:  # pyperf has no empty suite
        return {"version": "1.0", "benchmarks": []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "suite.json"
        pyperf.BenchmarkSuite(benchmarks).dump(str(file))
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return document
