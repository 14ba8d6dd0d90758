"""The newest state of a project as plain values, as `schemas.py` declares them: thousands of cells are no models."""

from typing import Any

from pullback_service.matrix.queries import MatrixRow, MatrixWorkload
from pullback_service.series.plain import plain_case, plain_reading
from pullback_service.series.queries import CommitFacts, FailedCase, MeasuredCell


def plain_workload(workload: MatrixWorkload) -> dict[str, Any]:
    """A `WorkloadSummary`."""
    return {"workload": workload.workload, "cases": [*map(_row, workload.rows)]}


def _row(row: MatrixRow) -> dict[str, Any]:
    return {
        "case": plain_case(row.case),
        "machine": row.machine.name,
        "machine_fingerprint": row.machine.fingerprint,
        "commit": None if row.commit is None else _commit(row.commit),
        "cells": [*map(_cell, row.cells)],
        "failures": [*map(_failure, row.failures)],
    }


def _commit(commit: CommitFacts) -> dict[str, Any]:
    return {
        "sha": commit.sha,
        "title": commit.title,
        "author": commit.author,
        "authored_at": commit.authored_at,
        "ordered_at": commit.ordered_at,
    }


def _cell(cell: MeasuredCell) -> dict[str, Any]:
    return {
        "series_id": cell.reading.series_id,
        "variant": cell.variant,
        "kind": cell.variant_kind,
        "metric": cell.metric,
        "unit": cell.unit,
        "direction": cell.direction,
        "exact": cell.exact,
        **plain_reading(cell.reading),
        "report_ids": cell.report_ids,
    }


def _failure(failed: FailedCase) -> dict[str, Any]:
    return {
        "variant": failed.variant,
        "kind": failed.kind,
        "message": failed.message,
        "commit": failed.commit.sha,
        "report_id": failed.report_id,
    }
