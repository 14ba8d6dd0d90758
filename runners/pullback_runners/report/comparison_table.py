"""Comparisons of two commits as a table for the terminal."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from pullback_runners.report.summary import checked_without_oracle, failures_in_words, left_out, unknown_noise
from pullback_runners.report.terminal_table import STYLES
from pullback_runners.report.words import bytes_in_words, factor_in_words, judged, time_in_words
from pullback_runners.workloads import Case

_ORDER = ("slower", "likely_slower", "faster", "likely_faster", "same", "ambiguous", "failed")
_MEMORY = {"array_bytes": "arrays", "array_allocs": "array requests", "native_bytes": "malloc", "gpu_bytes": "GPU"}
_SHOWN = {**_MEMORY, "python_bytes": "Python"}
"""Metrics in the table: requests of Python itself are shown if they changed, and do not count as memory of the variant."""


def comparison_table(report: Mapping[str, Any]) -> Table:
    """Per case and variant: the candidate's time and memory against the reference's."""
    table = Table.grid(padding=(0, 2, 0, 0))
    if report["comparisons"]:
        table.add_row(*(Text(heading, style="bold") for heading in ("case", "variant", "time", "memory")))
    for name, variant, rows in _by_case(report["comparisons"]):
        table.add_row(Text(name), variant, _time(rows.get("time"), report["harness"]), _memory(rows))
    return table


def comparison_notes(report: Mapping[str, Any]) -> Iterator[Text]:
    """The answer in a sentence, and what a reader must know to judge it."""
    rows = report["comparisons"]
    failed = ((row["case"], row["variant"], row["error"]["message"]) for row in rows if row["outcome"] == "failed")
    for sentence in failures_in_words(failed):
        yield Text(sentence, style="red")
    harness = report["harness"]
    if not harness["complete"]:
        yield Text("stopped early: only finished cases are shown", style="yellow")
    if rows and harness["quality"] != "clean":
        yield Text(f"busy machine: {'; '.join(harness['contamination'])}", style="yellow")
    if harness.get("equal_code"):
        rest = "so that nothing is claimed" if rows else "and nothing was measured again"
        yield Text(f"equal code: the commit changed nothing that is measured, {rest}", style="yellow")
    if (noise := unknown_noise(rows)) is not None:
        more = "" if harness.get("suite") in {"standard", "full"} else "--suite standard takes 20, and "
        yield Text(f"{noise}; {more}a quieter machine or fewer cases leave time for more")
    for sentence in left_out(report):
        yield Text(f"not measured: {sentence}")
    for sentence in checked_without_oracle(report):
        yield Text(sentence)
    counted = [judged(row, harness) for row in rows if row["metric"] == "time"]
    if any(outcome.startswith("likely") for outcome in counted):
        yield Text("likely is not certain: this machine was busy, and how far that moves a ratio was not measured")
    names = ", ".join(
        [f"{counted.count(o)} {o.replace('_', ' ')}" for o in _ORDER if o in counted] + [*_by_memory(rows)]
    )
    reference, candidate = report["reference"]["sha"][:10], report["commit"]["sha"][:10]
    changes = " with uncommitted changes" if report["commit"]["dirty"] else ""
    yield Text(f"{candidate}{changes} against {reference}: {names or 'nothing compared'}; {report['duration_s']:.0f} s")


def _by_memory(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The numbers of variants that need more memory, and less."""
    outcomes = [{row["outcome"] for metric, row in each.items() if metric in _MEMORY} for _, _, each in _by_case(rows)]
    for outcome in ("more", "less"):
        if number := sum(outcome in each for each in outcomes):
            yield f"{number} {'need' if number > 1 else 'needs'} {outcome} memory"


def _by_case(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, dict[str, Mapping[str, Any]]]]:
    results: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        results.setdefault((Case.of_document(row["case"]).name, row["variant"]), {})[row["metric"]] = row
    for (name, variant), metrics in results.items():
        yield name, variant, metrics


def _time(row: Mapping[str, Any] | None, harness: Mapping[str, Any]) -> Text:
    if row is None:
        return Text("not timed")
    outcome = judged(row, harness)
    parts = time_in_words({**row, "outcome": "ambiguous"} if outcome == "ambiguous" else row)
    return Text(f"likely {parts}" if outcome.startswith("likely") else parts, style=STYLES.get(outcome, ""))


def _memory(rows: Mapping[str, Mapping[str, Any]]) -> Text:
    """The counts that changed; `equal` where none did."""
    text = Text()
    for metric, word in _SHOWN.items():
        row = rows.get(metric)
        unchanged = {"equal", "failed"} if metric in _MEMORY else {"equal", "failed", "ambiguous"}
        if row is not None and row["outcome"] not in unchanged:
            before, after = (bytes_in_words(v) if metric.endswith("bytes") else str(v) for v in row["values"])
            text.append(", " if text else "")
            text.append(f"{word} {before} to {after}", style=STYLES.get(row["outcome"], ""))
            change = "varies" if row["outcome"] == "ambiguous" else factor_in_words(row)
            if change == "1.00x":  # exact counts differ by less than a factor shows
                change = f"{row['values'][1] - row['values'][0]:+d}{' B' if metric.endswith('bytes') else ''}"
            text.append(f" ({change})")
    return text or Text("equal" if len(rows) > 1 else "")
