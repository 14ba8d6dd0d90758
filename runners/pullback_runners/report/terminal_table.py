"""A report as a table for the terminal."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pullback_runners.report.summary import (
    UNKNOWN_NOISE,
    baseline_in_words,
    baseline_of,
    checked_without_oracle,
    failures_in_words,
    is_on_device,
    left_out,
)
from pullback_runners.report.words import duration_in_words, factor_in_words, memory_in_words, time_in_words
from pullback_runners.workloads import Case

_OUTCOME_STYLES = {
    "faster": "green",
    "less": "green",
    "slower": "red",
    "more": "red",
    "failed": "bold red",
    "ambiguous": "yellow",
}


_GPU = "GPU"
_HEADINGS = ("variant", "time a call", "time against {baseline}", "arrays", "malloc", _GPU, "gradient error")
_NARROW = (None, None, 14, 14, 14, 14, 8)
"""Widths at which cells fold between their words, for terminals that are too narrow for one line a variant."""

_GAP = 2


def report_table(report: Mapping[str, Any], width: int) -> Group:
    """Per case and variant: time, its factor against the baseline, memory by layer, gradient error; in `width` columns."""
    shown = [place for place, name in enumerate(_HEADINGS) if name != _GPU or is_on_device(report)]
    headings = [_HEADINGS[place].format(baseline=baseline_in_words(report)) for place in shown]
    narrowed = [_NARROW[place] for place in shown]
    cases = [
        (Case.of_document(case["case"]).name, [[row[place] for place in shown] for row in _rows(case)])
        for case in report["cases"]
    ]
    rows = [row for _, rows in cases for row in rows]
    widths = [max(map(cell_len, map(str, column))) for column in zip(headings, *rows, strict=True)]
    if sum(widths) + _GAP * len(widths) > width:
        widths = [narrow or natural for natural, narrow in zip(widths, narrowed, strict=True)]
    lines: list[RenderableType] = [_grid([[Text(heading, style="bold") for heading in headings]], headings, widths)]
    for name, rows in cases:
        lines += [Text(name, style="bold cyan"), _grid(rows, headings, widths)]
    return Group(*lines)


def _grid(rows: Iterable[list[Text]], headings: Sequence[str], widths: Sequence[int]) -> Table:
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    for heading, width in zip(headings, widths, strict=True):
        right = heading in {"time a call", "gradient error"}
        # A word that is too long, an interval of six digits, goes on in the next line: dots in its place would lose it.
        grid.add_column(width=width, justify="right" if right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def _rows(case: Mapping[str, Any]) -> Iterator[list[Text]]:
    for variant in case["variants"]:
        if variant["error"]:
            failed = Text("failed", style="bold red")
            name, kind = Text(f"  {variant['variant']}"), Text(variant["error"]["kind"])
            yield [name, failed, kind, *(Text() for _ in _HEADINGS[3:])]
        else:
            yield _variant_row(
                variant, _pairs(case, variant["variant"]), is_baseline=variant["variant"] == baseline_of(case)
            )


def footnotes(report: Mapping[str, Any]) -> Iterator[Text]:
    """Notes under the table: failures with their reasons, and every reason for doubt."""
    failed = (
        (case["case"], variant["variant"], variant["error"]["message"])
        for case in report["cases"]
        for variant in case["variants"]
        if variant["error"]
    )
    for sentence in failures_in_words(failed):
        yield Text(sentence, style="red")
    harness = report["harness"]
    if not harness["complete"]:
        yield Text("stopped early: the cases above were finished, the others are not in the report", style="yellow")
    if harness["quality"] == "contaminated":
        yield Text(f"busy machine: {'; '.join(harness['contamination'])}", style="yellow")
    pairs = [pair for case in report["cases"] for pair in case["paired"] if pair["metric"] == "time"]
    outcomes = {pair["outcome"] for pair in pairs}
    remedy = "; --suite standard takes more" if harness["suite"] in {"quick", "trial"} else ""
    if "ambiguous" in outcomes:
        groups = max(pair["n"] for pair in pairs)
        told = "1 group does not tell" if groups == 1 else f"{groups} groups do not tell"
        yield Text(f"ambiguous: {told} whether there is a difference{remedy}", style="yellow")
    if any(pair.get("margin_is_provisional") for pair in pairs):
        yield Text(f"{UNKNOWN_NOISE}{remedy}")
    yield from map(Text, checked_without_oracle(report))
    yield from (Text(f"not measured: {sentence}") for sentence in left_out(report))
    counted = [v["metrics"] for case in report["cases"] for v in case["variants"] if not v["error"]]
    if any(metrics["native_allocs"]["value"] is None for metrics in counted):
        yield Text("malloc not seen: that needs Linux with glibc and its own malloc, on x86-64 or AArch64")


def _variant_row(
    variant: Mapping[str, Any], pairs: Mapping[str, Mapping[str, Any]], *, is_baseline: bool
) -> list[Text]:
    metrics = variant["metrics"]
    processes = metrics["time"]["processes"]
    time = duration_in_words(statistics.median(processes)) if processes else "not timed"
    if "time" in pairs:
        against = Text(time_in_words(pairs["time"]), style=_OUTCOME_STYLES.get(pairs["time"]["outcome"], ""))
    else:
        against = Text("baseline" if is_baseline else "-")
    return [
        Text(f"  {variant['variant']}"),
        Text(time),
        against,
        _memory(metrics, pairs, "array"),
        _memory(metrics, pairs, "native"),
        _memory(metrics, pairs, "gpu"),
        Text(f"{variant['gradient']['max_rel_error']:.1e}"),
    ]


def _memory(metrics: Mapping[str, Any], pairs: Mapping[str, Mapping[str, Any]], layer: str) -> Text:
    if f"{layer}_bytes" not in metrics:
        return Text()
    text = Text(memory_in_words(metrics[f"{layer}_bytes"], metrics[f"{layer}_allocs"]))
    pair = pairs.get(f"{layer}_bytes")
    if pair is not None:
        text.append(", ").append(factor_in_words(pair), style=_OUTCOME_STYLES.get(pair["outcome"], ""))
    return text


def _pairs(case: Mapping[str, Any], variant: str) -> dict[str, Mapping[str, Any]]:
    return {pair["metric"]: pair for pair in case["paired"] if pair["variant"] == variant}
