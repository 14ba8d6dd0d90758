"""A report as a table for the terminal."""

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from pullback_runners.report.words import duration_in_words, factor_in_words, memory_in_words, time_in_words
from pullback_runners.variants import BASELINE
from pullback_runners.workloads import Case

_OUTCOME_STYLES = {
    "faster": "green",
    "less": "green",
    "slower": "red",
    "more": "red",
    "failed": "bold red",
    "ambiguous": "yellow",
}


def report_table(report: Mapping[str, Any]) -> Table:
    """Per case and variant: time, its factor against the baseline, memory by layer, gradient error."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case / variant", no_wrap=True)
    table.add_column("time a call", justify="right", no_wrap=True)
    table.add_column(f"time against {BASELINE}", no_wrap=True)
    table.add_column("arrays", no_wrap=True)
    table.add_column("malloc", no_wrap=True)
    table.add_column("gradient error", justify="right", no_wrap=True)
    for case in report["cases"]:
        table.add_row(Text(Case.of_document(case["case"]).name, style="bold"))
        for variant in case["variants"]:
            table.add_row(*_variant_row(variant, _pairs(case, variant["variant"])))
        for failed in case["failed_variants"]:
            table.add_row(f"  {failed['variant']}", Text("failed", style="bold red"), failed["error"]["kind"])
    return table


def footnotes(report: Mapping[str, Any]) -> Iterator[Text]:
    """What a reader must know to judge the table: failures with their reasons, and every reason for doubt."""
    for case in report["cases"]:
        for failed in case["failed_variants"]:
            name = Case.of_document(case["case"]).name
            yield Text(f"failed: {name} {failed['variant']}: {failed['error']['message']}", style="red")
    harness = report["harness"]
    if not harness["complete"]:
        yield Text("stopped early: the cases above were finished, the others are not in the report", style="yellow")
    if harness["quality"] == "contaminated":
        yield Text(f"contaminated: {'; '.join(harness['contamination'])}", style="yellow")
    pairs = [pair for case in report["cases"] for pair in case["paired"] if pair["metric"] == "time"]
    outcomes = {pair["outcome"] for pair in pairs}
    if "ambiguous" in outcomes:
        groups = max(pair["n"] for pair in pairs)
        remedy = "; --suite standard takes more" if harness["suite"] == "quick" else ""
        yield Text(f"ambiguous: {groups} groups do not tell whether there is a difference{remedy}", style="yellow")
    if any(pair.get("margin_is_provisional") for pair in pairs):
        margin = max(pair["margin"] for pair in pairs if "margin" in pair)
        yield Text(f"less than {margin:.0%} is no difference here: a provisional margin, not yet this machine's own")
    if any(v["metrics"]["native_allocs"]["value"] is None for case in report["cases"] for v in case["variants"]):
        yield Text("malloc not seen: the native counter was not built (no C compiler when Pullback was installed)")


def _variant_row(variant: Mapping[str, Any], pairs: Mapping[str, Mapping[str, Any]]) -> list[str | Text]:
    metrics = variant["metrics"]
    processes = metrics["time"]["processes"]
    time = duration_in_words(statistics.median(processes)) if processes else "not timed"
    if "time" in pairs:
        against = Text(time_in_words(pairs["time"]), style=_OUTCOME_STYLES.get(pairs["time"]["outcome"], ""))
    else:
        against = Text("baseline" if variant["variant"] == BASELINE else "")
    return [
        f"  {variant['variant']}",
        time,
        against,
        _memory(metrics, pairs, "array"),
        _memory(metrics, pairs, "native"),
        f"{variant['gradient']['max_rel_error']:.1e}",
    ]


def _memory(metrics: Mapping[str, Any], pairs: Mapping[str, Mapping[str, Any]], layer: str) -> Text:
    text = Text(memory_in_words(metrics[f"{layer}_bytes"], metrics[f"{layer}_allocs"]))
    pair = pairs.get(f"{layer}_bytes")
    if pair is not None:
        text.append(f", {factor_in_words(pair)}", style=_OUTCOME_STYLES.get(pair["outcome"], ""))
    return text


def _pairs(case: Mapping[str, Any], variant: str) -> dict[str, Mapping[str, Any]]:
    return {pair["metric"]: pair for pair in case["paired"] if pair["variant"] == variant}
