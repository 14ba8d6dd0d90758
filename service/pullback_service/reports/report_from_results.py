"""Another tool's results made into our report. Pure: the time is a parameter.

Times are in seconds and sizes in bytes by now. Results of one case that only differ in their variant become one case
with several variants; two results of one variant of one case are refused, since one of them would be lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from pullback_service.fields import LONGEST_RUN_S
from pullback_service.importers.json_paths import refuse
from pullback_service.importers.results import ImportedFile, Metric, Result
from pullback_service.quality import BUSY, CLEAN
from pullback_service.reports.schemas import FORMAT, MOST_VARIANTS, VERSION
from pullback_service.series import case_identity

# The same file at the same place is the same report, whoever sends it how often.
_NAMESPACE = UUID("6d1c5f0e-6e0b-5a57-9a3a-3f1f5a0c9d11")


@dataclass(frozen=True, slots=True)
class ResultOrigin:
    """The place of results, after all statements about it were put together."""

    project: str
    sha: str
    branch: str | None
    machine: str
    authored_at: datetime | None
    dirty: bool
    variant: str | None


@dataclass(frozen=True, slots=True)
class AssembledReport:
    """Our report, and for each of its cases where in the file it came from."""

    document: dict[str, Any]
    places: tuple[str, ...]


def assemble(
    imported: ImportedFile, place: ResultOrigin, *, tool_format: str, digest: bytes, now: datetime
) -> AssembledReport:
    """The report that says what the file says."""
    by_case: dict[bytes, dict[str, Any]] = {}
    paths: dict[bytes, str] = {}
    variants: dict[tuple[bytes, str], str] = {}
    for result in imported.results:
        identity = case_identity.identity(result.workload, result.params, None, None)
        variant = place.variant or result.variant or "external"
        earlier = variants.setdefault((identity, variant), result.path)
        if earlier != result.path:
            label = case_identity.label(result.workload, result.params, None, None)
            refuse(result.path, f"is {label} of variant {variant}, and so is {earlier}: name one of them differently")
        if identity not in by_case:
            by_case[identity] = {"case": {"workload": result.workload, "params": dict(result.params)}, "variants": []}
            paths[identity] = result.path
        found = by_case[identity]["variants"]
        if len(found) >= MOST_VARIANTS:
            refuse(result.path, f"is one variant too many: the limit is {MOST_VARIANTS} in a case (MOST_VARIANTS)")
        found.append(_variant(variant, result))
    document = {
        "format": FORMAT,
        "version": VERSION,
        "id": str(uuid5(_NAMESPACE, digest.hex())),
        "started_at": (imported.started_at or now).isoformat(),
        # What a file adds up to beyond all reason is no reason to refuse its results.
        "duration_s": None if (imported.duration_s or 0.0) > LONGEST_RUN_S else imported.duration_s,
        "project": place.project,
        "commit": {
            "sha": place.sha,
            "parents": [],
            "branch": place.branch,
            "authored_at": place.authored_at.isoformat() if place.authored_at is not None else None,
            "dirty": place.dirty,
        },
        "machine": {
            # A machine that a person names is known by that name, and never mistaken for one that an agent measured.
            "fingerprint": f"named {place.machine}"[:200].rstrip(),
            "name": place.machine,
            "facts": dict(imported.machine.facts),
        },
        "harness": {
            "version": imported.tool[:200].strip(),
            # A tree with changes is no commit: its points count only where the commit has no others.
            "quality": BUSY if place.dirty else CLEAN,
            "importer": tool_format,
            "notes": list(imported.notes),
            **({"preflight": dict(imported.machine.varying)} if imported.machine.varying else {}),
        },
        "cases": list(by_case.values()),
        "comparisons": [],
    }
    return AssembledReport(document, tuple(paths.values()))


def _variant(name: str, result: Result) -> dict[str, Any]:
    error = None if result.failed is None else {"kind": result.failed.kind, "message": result.failed.message}
    if error is None and not result.metrics:
        error = {"kind": "no-value", "message": "The file has no value for this benchmark."}
    return {
        "variant": name,
        "kind": "external",
        "metrics": {key: _metric(metric) for key, metric in result.metrics.items()} if error is None else {},
        "error": error,
    }


def _metric(metric: Metric) -> Mapping[str, Any]:
    return {
        "unit": metric.unit,
        "direction": metric.direction,
        "kind": "exact" if metric.exact else "noisy",
        "processes": list(metric.values),
        "method": metric.method,
    }
