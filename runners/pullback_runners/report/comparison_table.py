"""Comparisons of two commits as a table for the terminal."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from pullback_runners.report.summary import left_out
from pullback_runners.report.words import bytes_in_words, factor_in_words, time_in_words
from pullback_runners.workloads import Case

_STYLES = {
    "faster": "green",
    "less": "green",
    "slower": "red",
    "more": "red",
    "failed": "bold red",
    "ambiguous": "yellow",
}

_MEMORY = {"array_bytes": "arrays", "array_allocs": "array requests", "native_bytes": "malloc", "gpu_bytes": "GPU"}


def comparison_table(report: Mapping[str, Any]) -> Table:
    """Per case and variant: the candidate's time and memory against the reference's."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row(*(Text(heading, style="bold") for heading in ("case", "variant", "time", "memory")))
    for name, variant, rows in _by_case(report["comparisons"]):
        time = rows.get("time")
        said = time_in_words(time) if time else "not timed"
        table.add_row(
            Text(name), variant, Text(said, style=_STYLES.get(time["outcome"], "") if time else ""), _memory(rows)
        )
    return table


def comparison_notes(report: Mapping[str, Any]) -> Iterator[Text]:
    """The answer in a sentence, and what a reader must know to judge it."""
    rows = report["comparisons"]
    for row in rows:
        if row["outcome"] == "failed":
            name = f"{Case.of_document(row['case']).name} {row['variant']}"
            yield Text(f"failed: {name}: {row['error']['message']}", style="red")
    harness = report["harness"]
    if not harness["complete"]:
        yield Text("stopped early: what was finished is above", style="yellow")
    if harness["quality"] == "contaminated":
        yield Text(f"contaminated: {'; '.join(harness['contamination'])}", style="yellow")
    if any(row.get("margin_is_provisional") for row in rows):
        yield Text(
            "less than 2 % is not claimed: too few groups to know how far twins are apart; --suite standard takes more"
        )
    for sentence in left_out(report):
        yield Text(f"not measured: {sentence}")
    counted = [row["outcome"] for row in rows if row["metric"] == "time"]
    said = ", ".join(
        f"{counted.count(o)} {o}" for o in ("slower", "faster", "same", "ambiguous", "failed") if o in counted
    )
    reference, candidate = report["reference"]["sha"][:10], report["commit"]["sha"][:10]
    changes = " with uncommitted changes" if report["commit"]["dirty"] else ""
    yield Text(f"{candidate}{changes} against {reference}: {said or 'nothing compared'}; {report['duration_s']:.0f} s")


def _by_case(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, dict[str, Mapping[str, Any]]]]:
    found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault((Case.of_document(row["case"]).name, row["variant"]), {})[row["metric"]] = row
    for (name, variant), metrics in found.items():
        yield name, variant, metrics


def _memory(rows: Mapping[str, Mapping[str, Any]]) -> Text:
    """What changed; `equal` where nothing did."""
    text = Text()
    for metric, word in _MEMORY.items():
        row = rows.get(metric)
        if row is not None and row["outcome"] not in {"equal", "failed"}:
            before, after = (bytes_in_words(v) if metric.endswith("bytes") else str(v) for v in row["values"])
            text.append(", " if text else "")
            text.append(f"{word} {before} to {after}", style=_STYLES.get(row["outcome"], ""))
            text.append(f" ({factor_in_words(row)})" if row["outcome"] != "ambiguous" else " (varies)")
    return text or Text("equal" if len(rows) > 1 else "")
