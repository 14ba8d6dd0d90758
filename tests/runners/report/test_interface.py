"""The runner writes plain dictionaries; the service's schemas are the one description of the format."""

import pytest

from pullback_runners.runs import run_suite

schemas = pytest.importorskip("pullback_service.reports.schemas", reason="the service's extra is not installed")


def test_the_service_takes_what_the_runner_writes(tiny_suite, faulty_workloads):
    report = run_suite(
        "quick",
        ["sound"],
        variants=["right", "zeros"],
        workload_files=[faulty_workloads],
        commit={"sha": "0123456789" * 4, "parents": [], "title": "A commit", "dirty": False},
        job={"id": 3, "attempt": 1},
    )
    document = schemas.ReportDocument.model_validate(report)
    unfused, right, zeros = document.cases[0].variants
    assert unfused.metrics["time"].processes == report["cases"][0]["variants"][0]["metrics"]["time"]["processes"]
    assert right.error is None
    assert unfused.digests.workload != right.digests.workload  # each has its own part of the file
    assert unfused.digests.code == unfused.program_hash or unfused.program_hash is None
    assert zeros.digests is None
    assert zeros.error.kind == "gradient"
