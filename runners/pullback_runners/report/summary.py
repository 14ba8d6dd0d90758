"""A report as rows of words, for tables of any kind. Pure."""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pullback_runners.measurement.gradient_check import CLOSED_FORM
from pullback_runners.measurement.outcomes import PROVISIONAL_FLOOR
from pullback_runners.report.document import BESIDE
from pullback_runners.report.words import (
    duration_in_words,
    factor_in_words,
    memory_in_words,
    time_in_words,
)
from pullback_runners.workloads import CPU, UNFUSED, Case

BESIDE_HEADINGS = ("device", "host", "cold")


def unknown_noise(times: Iterable[Mapping[str, Any]]) -> str | None:
    """The sentence on rows whose margin is provisional, None where none is: what is not claimed, and why."""
    claims = sorted(
        {round(100 * row.get("claim", PROVISIONAL_FLOOR)) for row in times if row.get("margin_is_provisional")}
    )
    if not claims:
        return None
    least = f"{claims[0]} to {claims[-1]}" if len(claims) > 1 else f"{claims[0]}"
    return f"differences of less than {least} % are not claimed: too few groups to know this machine's own noise"


@dataclass(frozen=True)
class Cell:
    """Words, and how they are to be taken: an outcome, or nothing."""

    text: str
    outcome: str = ""


@dataclass(frozen=True)
class Row:
    """A variant of a case."""

    variant: str
    time: Cell
    against: Cell
    arrays: Cell
    malloc: Cell
    python: Cell
    gpu: Cell
    gradient: Cell
    error: str | None = None
    beside: tuple[Cell, ...] = ()
    """The times that stand beside the wall's on a device, in the order of `BESIDE_HEADINGS`."""


def is_on_device(report: Mapping[str, Any]) -> bool:
    """True if a case was computed elsewhere than on the CPU: then its device memory is shown."""
    return any(case["case"]["device"] != CPU for case in report["cases"])


def has_times_beside(report: Mapping[str, Any]) -> bool:
    """True if other times stand beside the wall's; older reports of a device have none."""
    return any("host_time" in each["metrics"] for case in report["cases"] for each in case["variants"])


def baseline_of(case: Mapping[str, Any]) -> str | None:
    """The variant that ratios of a case are against; reports of before it could be chosen do not say it."""
    named: str | None = case.get("baseline", UNFUSED)
    return named if any(variant["variant"] == named for variant in case["variants"]) else None


def baseline_in_words(report: Mapping[str, Any]) -> str:
    """The baseline of a report's ratios in words: `unfused`, or `the baseline` where cases have different ones."""
    names = {baseline_of(case) for case in report["cases"]} - {None}
    return str(names.pop()) if len(names) == 1 else "the baseline"


def stands_alone(report: Mapping[str, Any]) -> bool:
    """True if no case has a baseline that ratios are against."""
    return bool(report["cases"]) and all(baseline_of(case) is None for case in report["cases"])


def case_rows(case: Mapping[str, Any], *, error: str = ".0e") -> Iterator[Row]:
    """One row a variant, the baseline first, as the report has them; `error` is the format of errors of gradients."""
    for variant in case["variants"]:
        if variant["error"]:
            nothing = Cell("")
            failed = Cell("failed", "failed")
            kind, message = variant["error"]["kind"], variant["error"]["message"]
            message = message if message.startswith(kind) else f"{kind}: {message}"
            yield Row(variant["variant"], failed, Cell(kind), nothing, nothing, nothing, nothing, nothing, message)
            continue
        metrics = variant["metrics"]
        pairs = {row["metric"]: row for row in case["paired"] if row["variant"] == variant["variant"]}
        processes = metrics["time"]["processes"]
        yield Row(
            variant["variant"],
            Cell(duration_in_words(statistics.median(processes)) if processes else "not timed"),
            _against(pairs, is_baseline=variant["variant"] == baseline_of(case)),
            _memory(metrics, pairs, "array"),
            _memory(metrics, pairs, "native"),
            _memory(metrics, pairs, "python"),
            _memory(metrics, pairs, "gpu"),
            Cell(f"{variant['gradient']['max_rel_error']:{error}}"),
            beside=tuple(_time_beside(metrics, name) for name in BESIDE),
        )


def lede(report: Mapping[str, Any]) -> str:
    """The result of the run in a sentence or two."""
    cases = report["cases"]
    means: dict[str, float] = {}
    for variant in dict.fromkeys(
        v["variant"] for case in cases for v in case["variants"] if v["variant"] != baseline_of(case)
    ):
        ratios = [
            row["log_ratio"]
            for case in cases
            for row in case["paired"]
            if row["variant"] == variant and row["metric"] == "time" and row["log_ratio"] is not None
        ]
        if ratios:
            means[variant] = statistics.fmean(ratios)
    parts = [f"{variant} {_factor_in_words(means[variant])}" for variant in sorted(means, key=lambda name: means[name])]
    over = f"Against {baseline_in_words(report)}, over {len(cases)} case{'s' if len(cases) != 1 else ''} by geometric mean:"
    text = f"{over} {', '.join(parts)}." if parts else ""
    if stands_alone(report):
        devices = " and ".join(dict.fromkeys(case["case"]["device"] for case in cases))
        text = f"Times and memory on {devices} have no ratios, because no baseline ran there."
    failed = sum(bool(variant["error"]) for case in cases for variant in case["variants"])
    if failed:
        wrong = f"{failed} variant{'s' if failed != 1 else ''} failed."
    else:
        wrong = "Every gradient is right." if cases else ""
    return f"{text} {wrong}".strip() or "Nothing was measured."


def doubts(report: Mapping[str, Any]) -> Iterator[str]:
    """Warnings that a reader needs to judge the numbers."""
    harness = report["harness"]
    if not harness["complete"]:
        yield "Stopped early: only finished cases are included."
    if harness["quality"] != "clean":
        yield f"Busy machine: {'; '.join(harness['contamination'])}."
    times = [row for case in report["cases"] for row in case["paired"] if row["metric"] == "time"]
    if any(row["outcome"] == "ambiguous" for row in times):
        groups = max(row["n"] for row in times)
        words = "1 group is too few" if groups == 1 else f"{groups} groups are too few"
        yield f"Ambiguous: {words} whether there is a difference."
    if (noise := unknown_noise(times)) is not None:
        yield f"{noise.capitalize()}."


def left_out(report: Mapping[str, Any]) -> list[str]:
    """A sentence for everything that was asked for, or belongs to the suite, and was not measured."""
    harness = report["harness"]
    return [*harness.get("refused", ()), *harness.get("absent", ())]


def checked_without_oracle(report: Mapping[str, Any]) -> list[str]:
    """Sentences on the cases whose workload declares no closed form, and what their gradients were compared with instead."""
    by_oracle: dict[str, set[str]] = {}
    for case in report["cases"]:
        oracle = (case.get("gradient") or {}).get("oracle")
        if oracle not in {None, CLOSED_FORM}:
            by_oracle.setdefault(oracle, set()).add(case["case"]["workload"])
    return [
        f"no oracle: gradients of {', '.join(sorted(names))} were compared with {oracle}"
        for oracle, names in by_oracle.items()
    ]


def failures_in_words(failed: Iterable[tuple[Mapping[str, Any], str, str]]) -> Iterator[str]:
    """A sentence for each case, variant and message of a failure; variants that fail alike share one."""
    alike: dict[tuple[str, str], list[str]] = {}
    for case, variant, message in failed:
        alike.setdefault((Case.of_document(case).name, message), []).append(variant)
    for (name, message), variants in alike.items():
        yield f"failed: {name} {', '.join(dict.fromkeys(variants))}: {message}"


def case_name(case: Mapping[str, Any]) -> str:
    """The derived name."""
    return Case.of_document(case["case"]).name


def _factor_in_words(log_ratio: float) -> str:
    factor = math.exp(abs(log_ratio))
    if factor < 1.005:
        return "as fast"
    return f"{factor:.3g}× {'faster' if log_ratio < 0 else 'slower'}"


def _against(pairs: Mapping[str, Mapping[str, Any]], *, is_baseline: bool) -> Cell:
    if is_baseline:
        return Cell("baseline")
    return Cell(time_in_words(pairs["time"]), pairs["time"]["outcome"]) if "time" in pairs else Cell("-")


def _memory(metrics: Mapping[str, Any], pairs: Mapping[str, Mapping[str, Any]], layer: str) -> Cell:
    if f"{layer}_bytes" not in metrics:
        return Cell("")
    words = memory_in_words(metrics[f"{layer}_bytes"], metrics[f"{layer}_allocs"])
    pair = pairs.get(f"{layer}_bytes")
    return Cell(words) if pair is None else Cell(f"{words}, {factor_in_words(pair)}", pair["outcome"])


def _time_beside(metrics: Mapping[str, Any], name: str) -> Cell:
    processes = metrics.get(name, {}).get("processes")
    return Cell(duration_in_words(statistics.median(processes)) if processes else "-")
