"""Commands that repeat the measurement of a page. They take commits out of the clone and leave the working tree alone."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pullback_dashboards.history import Commit
from pullback_service.incidents.commands import compare_command, measure_command
from pullback_service.reports.ratios import baseline_of
from pullback_service.series.case_identity import label

EXTERNAL = "external"
"""The kind of variants that another tool measured."""


def reproduce_command(document: Mapping[str, Any], commit: Commit, only: Mapping[str, Any] | None = None) -> str:
    """The commands that measure a report again, or `only` one case of it. Another tool's suite is run by that tool."""
    entries = document.get("cases", ()) if only is None else (only,)
    kinds = {variant.get("kind") for entry in entries for variant in entry.get("variants", ())}
    harness = document.get("harness", {})
    if kinds == {EXTERNAL}:
        project = shlex.quote(document.get("project") or "NAME")
        return (
            f"{_beside(commit)}\n# run the benchmark tool as before, then upload its results:\n"
            f"pullback upload FILE --project {project}"
        )
    # A run has ratios to the baseline; where there are none, two commits were measured and nothing besides.
    ratios = any(entry.get("paired") for entry in entries)
    pairs = {(row["reference"], row["candidate"]) for row in document.get("comparisons", ()) if not ratios}
    always = () if pairs else {baseline_of(entry) for entry in entries}
    options = shlex.join(_options(harness.get("suite") or "quick", entries, always=always, by_name=only is not None))
    if len(pairs) == 1:
        ((reference, candidate),) = pairs
        return f"{compare_command(reference, candidate)} {options} -o compared.json"
    engine = harness.get("engine") or {}
    if engine.get("sha", commit.sha) != commit.sha and not harness.get(
        "job"
    ):  # workloads of somebody's own, beside the commit
        files = harness.get("workload_files") or ["FILE"]  # reports from before 2026-11-22 do not name it
        own = shlex.join(part for file in files for part in ("--workloads", file))
        return f"{_beside(commit)}\npullback run {own} {options} -o report.json"
    remark = "# without the uncommitted changes:\n" if document.get("commit", {}).get("dirty") else ""
    return f"{remark}{measure_command(commit.sha)} {options} -o measured"


def first_measurement(project: str, sha: str, base: str, *, is_ours: bool) -> str:
    """Measures a commit of which there is no report yet, by Pullback if that measures the project, and sends the result."""
    if is_ours:
        return f"{measure_command(sha)} --suite quick -o measured\npullback upload measured/*.json --server {base}"
    return f"pullback upload FILE --project {shlex.quote(project)} --commit {sha} --server {base}"


def _beside(commit: Commit) -> str:
    return f"git worktree add --detach ../{commit.short} {commit.sha} && cd ../{commit.short}"


def _options(
    suite: str, entries: Sequence[Mapping[str, Any]], *, always: Collection[str], by_name: bool
) -> Iterator[str]:
    """The options of a command that measures the same: the cases, by their names or as they were asked for, and the variants."""
    cases = [entry["case"] for entry in entries]
    yield from ("--suite", suite.partition(":")[0] if by_name else suite)
    for case in cases if by_name else ():
        yield from ("--case", label(case["workload"], case.get("params", {}), case.get("dtype"), case.get("device")))
    if any(case.get("device") == "cuda" for case in cases):
        yield from ("--device", "cuda")
    measured = [entry.get("variants", ()) for entry in entries]
    of_cases = {tuple(each["variant"] for each in variants if each["variant"] not in always) for variants in measured}
    # Cases with other variants than others are the suite's: a variant that is asked for and that a case does not have fails.
    for variant in of_cases.pop() if len(of_cases) == 1 else ():
        yield from ("--variant", variant)
    if any("instructions" in each.get("metrics", {}) for variants in measured for each in variants):
        yield "--instructions"
