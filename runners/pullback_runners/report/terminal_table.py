"""A report as a table for the terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pullback_runners.report.summary import (
    BESIDE_HEADINGS,
    Cell,
    baseline_in_words,
    case_rows,
    checked_without_oracle,
    failures_in_words,
    has_times_beside,
    is_on_device,
    left_out,
    unknown_noise,
)
from pullback_runners.workloads import Case

STYLES = {
    "faster": "green",
    "less": "green",
    "slower": "red",
    "likely_faster": "green dim",
    "likely_slower": "red dim",
    "more": "red",
    "failed": "bold red",
    "ambiguous": "yellow",
}


_GPU = "GPU"
_HEADINGS = (
    "variant",
    "time a call",
    *BESIDE_HEADINGS,
    "time against {baseline}",
    "arrays",
    "malloc",
    _GPU,
    "gradient error",
)
_NARROW = (None, None, None, None, None, 14, 14, 14, 14, 8)
"""Widths at which cells fold between their words, for terminals that are too narrow for one line a variant."""

_GAP = 2


def report_table(report: Mapping[str, Any], width: int) -> Group:
    """Per case and variant: time, its factor against the baseline, memory by layer, gradient error; in `width` columns."""
    absent = {*(() if is_on_device(report) else (_GPU,)), *(() if has_times_beside(report) else BESIDE_HEADINGS)}
    shown = [place for place, name in enumerate(_HEADINGS) if name not in absent]
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
        right = heading in {"time a call", "gradient error", *BESIDE_HEADINGS}
        # A word that is too long, an interval of six digits, goes on in the next line: dots in its place would lose it.
        grid.add_column(width=width, justify="right" if right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def _rows(case: Mapping[str, Any]) -> Iterator[list[Text]]:
    for row in case_rows(case, error=".1e"):
        beside = row.beside or (Cell(""),) * len(BESIDE_HEADINGS)
        cells = (row.time, *beside, row.against, row.arrays, row.malloc, row.gpu, row.gradient)
        yield [Text(f"  {row.variant}"), *map(_text, cells)]


def _text(cell: Cell) -> Text:
    """A cell; what compares it has the colour of the outcome."""
    amount, comma, compared = cell.text.rpartition(", ")
    return Text.assemble(amount + comma, (compared, STYLES.get(cell.outcome, "")))


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
    if harness["quality"] != "clean":
        yield Text(f"busy machine: {'; '.join(harness['contamination'])}", style="yellow")
    pairs = [pair for case in report["cases"] for pair in case["paired"] if pair["metric"] == "time"]
    outcomes = {pair["outcome"] for pair in pairs}
    remedy = "; --suite standard takes more" if harness["suite"] in {"quick", "trial"} else ""
    if "ambiguous" in outcomes:
        groups = max(pair["n"] for pair in pairs)
        words = "1 group is too few" if groups == 1 else f"{groups} groups are too few"
        yield Text(f"ambiguous: {words} whether there is a difference{remedy}", style="yellow")
    if (noise := unknown_noise(pairs)) is not None:
        yield Text(f"{noise}{remedy}")
    yield from map(Text, checked_without_oracle(report))
    yield from (Text(f"not measured: {sentence}") for sentence in left_out(report))
    counted = [v["metrics"] for case in report["cases"] for v in case["variants"] if not v["error"]]
    if any(metrics["native_allocs"]["value"] is None for metrics in counted):
        yield Text("malloc not seen: that needs Linux with glibc and its own malloc, on x86-64 or AArch64")
