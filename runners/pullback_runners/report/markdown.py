"""A report as Markdown: what a pull request or an issue shows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pullback_runners.report.files import write_text
from pullback_runners.report.summary import (
    BESIDE_HEADINGS,
    Cell,
    baseline_in_words,
    case_name,
    case_rows,
    checked_without_oracle,
    doubts,
    has_times_beside,
    is_on_device,
    lede,
    left_out,
)

_HEADINGS = {
    "variant": "---",
    "time a call": "---:",
    **dict.fromkeys(BESIDE_HEADINGS, "---:"),
    "time against {baseline}": "---",
    "arrays": "---",
    "malloc": "---",
    "GPU": "---",
    "gradient error": "---:",
}
"""Columns with their alignment; GPU if there is one, times other than wall time if they were measured."""


def markdown_of(report: Mapping[str, Any]) -> str:
    """One table a case, with the sentence that sums them up above and every reason for doubt below."""
    commit = report["commit"]
    what = f"`{commit['sha'][:10]}` {_plain(commit.get('title') or '')}".strip() if commit else "No commit"
    dirty = " (with uncommitted changes)" if commit and commit.get("dirty") else ""
    lines = [f"## Gradients at {what}{dirty}", "", lede(report), ""]
    on_device, timed_beside = is_on_device(report), has_times_beside(report)
    absent = {*(() if on_device else ("GPU",)), *(() if timed_beside else BESIDE_HEADINGS)}
    baseline = baseline_in_words(report)
    headings = {name.format(baseline=baseline): align for name, align in _HEADINGS.items() if name not in absent}
    for case in report["cases"]:
        lines += [
            f"### {case_name(case)}",
            "",
            f"| {' | '.join(headings)} |",
            f"|{'|'.join(headings.values())}|",
        ]
        for row in case_rows(case):
            beside = (row.beside or (Cell(""),) * len(BESIDE_HEADINGS)) if timed_beside else ()
            memory = [row.arrays, row.malloc, *([row.gpu] if on_device else [])]
            words = [row.variant, *(cell.text for cell in (row.time, *beside, row.against, *memory, row.gradient))]
            if row.error:
                words[2 + len(beside)] = row.error
            lines.append(f"| {' | '.join(map(_plain, words))} |")
        lines.append("")
    lines += [f"- {doubt}" for doubt in doubts(report)]
    lines += [f"- {sentence[0].upper()}{sentence[1:]}." for sentence in checked_without_oracle(report)]
    lines += [f"- Not measured: {_plain(sentence)}." for sentence in left_out(report)]
    facts = report["machine"]["facts"]
    engines = f"{facts.get('cpu')}, {facts.get('python')}, NumPy {facts.get('numpy')}"
    lines += [
        f"- {report['machine']['name']}: {engines}; suite {report['harness']['suite']}, {report['duration_s']:.0f} s",
        "",
    ]
    return "\n".join(lines)


def write_markdown(report: Mapping[str, Any], path: Path) -> None:
    """Write the tables."""
    write_text(markdown_of(report), path, "--markdown")


def _plain(text: str) -> str:
    """Text that is no markup, in a cell of a table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
