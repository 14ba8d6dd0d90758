"""Commands that measure an incident again in a checkout of the project. Pure; names are quoted for the shell."""

import shlex
from typing import Final

from pullback_service.incidents.queries import Detail
from pullback_service.incidents.sentences import lead_of
from pullback_service.jobs.labels import CPU

_MOST_CASES: Final = 8


def measure_command(sha: str) -> str:
    """Builds and measures a commit."""
    return f"pullback run --commits {sha}"


def compare_command(reference: str, candidate: str) -> str:
    """Builds two commits and measures them in the same groups."""
    return f"pullback compare --against {reference} --candidate {candidate}"


def reproduce_command(detail: Detail) -> str:
    """The command that measures both ends of the range in turns, on one device, in the cases that show it there; of a failure the commit alone."""
    cases: dict[str, set[str]] = {}
    device = lead_of(detail).device if detail.changes else CPU
    for each in (each for each in detail.changes if each.device == device):
        cases.setdefault(each.case, set()).update({each.change.variant} - {None})  # type: ignore[arg-type] # none is left
    chosen = sorted(cases)[:_MOST_CASES]
    variants = sorted(set.intersection(*(cases[case] for case in chosen))) if chosen else []
    # A variant that is asked for and that a case does not have fails.
    if any(cases[case] != set(variants) for case in chosen):
        variants = []
    if detail.incident.kind in {"wrong_gradient", "failed", "missing"}:
        command, end = measure_command(detail.commit.sha), ["-o", "measured"]
    else:
        command, end = compare_command(detail.reference.sha, detail.commit.sha), []
    options = ["--suite", "standard", *(part for case in chosen for part in ("--case", case))]
    options += [part for variant in variants for part in ("--variant", variant)]
    options += [] if device == CPU else ["--device", device]
    return f"{command} {shlex.join([*options, *end])}"
