"""The content of a report whose file was dropped, from its rows: its cases, as far as our format has them."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from pullback_service.models.commits import Commit
from pullback_service.models.machines import Machine
from pullback_service.models.reports import Comparison, Failure, Report
from pullback_service.models.series import Case, Point, Series
from pullback_service.uploaded_claims import kind_of_metric

MOST_POINTS = 20_000


async def remains_of(session: AsyncSession, report: Report) -> dict[str, Any]:
    """A document without slices, plans, facts of the time and what was left out: these were in the file alone.

    Index: ix_point_report_id, ix_failure_report_id, ix_comparison_report_id, pk_commit, pk_machine.
    """
    commit = (await session.scalars(select(Commit).where(Commit.id == report.commit_id))).one()
    machine = (await session.scalars(select(Machine).where(Machine.id == report.machine_id))).one()
    cases: dict[int, dict[str, Any]] = {}
    points = await session.execute(
        select(Point, Series, Case)
        .join(Series, Series.id == Point.series_id)
        .join(Case, Case.id == Series.case_id)
        .where(Point.report_id == report.id)
        .order_by(Point.id)
        .limit(MOST_POINTS)
    )
    for point, series, case in points:
        _add(cases.setdefault(case.id, _entry(case)), point, series)
    failures = await session.execute(
        select(Failure, Case)
        .join(Case, Case.id == Failure.case_id)
        .where(Failure.report_id == report.id)
        .order_by(Failure.id)
        .limit(MOST_POINTS)
    )
    for failure, case in failures:
        entry = cases.setdefault(case.id, _entry(case))
        error = {"kind": failure.kind, "message": failure.message}
        if failure.variant is None:
            entry["error"] = error
        else:
            entry["variants"].append({"variant": failure.variant, "kind": "external", "metrics": {}, "error": error})
    return {
        "commit": {
            "sha": commit.sha,
            "branch": commit.branch,
            "author": commit.author,
            "authored_at": None if commit.authored_at is None else commit.authored_at.isoformat(),
            "title": commit.title,
        },
        "machine": {"host": machine.host, "name": machine.name, "fingerprint": machine.fingerprint, "facts": {}},
        "harness": {"version": "not kept", "suite": report.suite},
        "cases": list(cases.values()),
        "comparisons": await _comparisons(session, report),
    }


async def _comparisons(session: AsyncSession, report: Report) -> list[dict[str, Any]]:
    """The report's statements of two commits. Index: ix_comparison_report_id."""
    older, newer = aliased(Commit), aliased(Commit)
    rows = await session.execute(
        select(Comparison, Case, older.sha, newer.sha)
        .join(Case, Case.id == Comparison.case_id)
        .join(older, older.id == Comparison.reference_id)
        .join(newer, newer.id == Comparison.candidate_id)
        .where(Comparison.report_id == report.id)
        .order_by(Comparison.id)
        .limit(MOST_POINTS)
    )
    return [
        {
            "case": _told(case),
            "variant": stated.variant,
            "metric": stated.metric,
            "reference": reference,
            "candidate": candidate,
            **stated.ratio._asdict(),
            "outcome": stated.outcome,
            "claim": stated.claim,
            "margin": stated.margin,
            "margin_is_provisional": stated.provisional,
        }
        for stated, case, reference, candidate in rows
    ]


def _told(case: Case) -> dict[str, Any]:
    return {"workload": case.workload, "params": case.params, "dtype": case.dtype, "device": case.device}


def _entry(case: Case) -> dict[str, Any]:
    return {"case": _told(case), "gradient": None, "error": None, "variants": [], "paired": []}


def _add(entry: dict[str, Any], point: Point, series: Series) -> None:
    variant = next((one for one in entry["variants"] if one["variant"] == series.variant), None)
    if variant is None:
        kind = series.variant_kind
        variant = {"variant": series.variant, "kind": kind, "metrics": {}, "program_hash": point.program_hash}
        entry["variants"].append(variant)
    metric: dict[str, Any] = {
        "unit": series.unit,
        "value": point.value,
        "method": point.method,
        "direction": series.direction,
        "kind": kind_of_metric(series.metric, exact=series.exact),
    }
    if point.process_values:
        metric["processes"] = list(point.process_values)
    elif point.process_count is None and point.process_low is not None:
        metric |= {"differs": True, "range": [point.process_low, point.process_high]}
    variant["metrics"][series.metric] = metric
    if point.baseline is not None:
        entry["paired"].append(
            {
                "variant": series.variant,
                "baseline": point.baseline,
                "metric": series.metric,
                **point.ratio._asdict(),
                "outcome": point.outcome,
            }
        )
