"""A report as one HTML file that needs nothing else: `pullback run --html FILE`.

Plotly's JavaScript is written into it out of the installed package, so the page works without a network and for years.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from pullback_runners.report.figures import memory_figure, process_figure, ratio_figure
from pullback_runners.report.files import write_text
from pullback_runners.report.summary import (
    BESIDE_HEADINGS,
    Cell,
    Row,
    baseline_in_words,
    case_name,
    case_rows,
    doubts,
    has_times_beside,
    is_on_device,
    lede,
    left_out,
    stands_alone,
)

_MARKS = {"faster": "▼", "less": "▼", "slower": "▲", "more": "▲", "ambiguous": "?", "failed": "✕"}
"""No meaning rests on colour alone."""

_CHARTED_CASES = 40
"""Charts of single cases come with so few cases: each is drawn when its table is opened."""


def write_page(report: Mapping[str, Any], path: Path) -> None:
    """Write the page."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - 5 MB that only this needs

    write_text(page_of(report, get_plotlyjs()), path, "--html")


def page_of(report: Mapping[str, Any], plotly_js: str) -> str:
    """The whole page."""
    commit = report["commit"] or {}
    title = f"{report['project']} {commit.get('sha', '')[:10]}".strip()
    charted = len(report["cases"]) <= _CHARTED_CASES
    figures = {"ratios": ratio_figure(report), "memory": memory_figure(report)}
    if charted:
        figures |= {f"case-{number}": process_figure(case) for number, case in enumerate(report["cases"])}
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)} · Pullback</title><style>{_read('page.css')}</style></head><body><main>",
            *_head(report, commit),
            *_charts(report),
            "<section><h2>Cases</h2>",
            *_signs(report),
            *(
                _case(
                    number,
                    case,
                    charted=charted,
                    on_device=is_on_device(report),
                    timed_beside=has_times_beside(report),
                )
                for number, case in enumerate(report["cases"])
            ),
            "</section>",
            *_left_out(report),
            *_foot(report),
            f"</main><script>{plotly_js}</script>",
            f'<script type="application/json" id="figures">{_json(figures)}</script>',
            f"<script>{_read('page.js')}</script></body></html>",
        ]
    )


def _head(report: Mapping[str, Any], commit: Mapping[str, Any]) -> Iterator[str]:
    harness = report["harness"]
    yield f'<header><p class="trail">Pullback · {escape(report["project"])}</p>'
    yield f"<h1>{escape(commit.get('title') or 'Gradients, measured')}</h1>"
    yield f'<p class="lede">{escape(lede(report))}</p>'
    facts = [
        f"<code>{escape(commit['sha'][:10])}</code>{' with uncommitted changes' if commit.get('dirty') else ''}"
        if commit
        else "no commit",
        escape(str(report["machine"]["name"])),
        escape(str(report["machine"]["facts"].get("cpu"))),
        f"suite {escape(str(harness['suite']))}",
        f"{report['duration_s']:.0f} s",
        escape(report["started_at"][:16].replace("T", " ") + " UTC"),
    ]
    yield '<ul class="facts">' + "".join(f"<li>{fact}</li>" for fact in facts) + "</ul>"
    result = list(doubts(report))
    if result:
        yield '<ul class="doubts">' + "".join(f"<li>{escape(doubt)}</li>" for doubt in result) + "</ul>"
    yield "</header>"


def _charts(report: Mapping[str, Any]) -> Iterator[str]:
    if not report["cases"]:
        return
    if not stands_alone(report):
        yield (
            f"<section><h2>Time against {escape(baseline_in_words(report))}</h2>"
            '<p class="hint">Left of the line is faster. Lines are intervals.</p>'
            '<div class="legend" data-of="ratios"></div><div class="chart" id="ratios"></div></section>'
        )
    if is_on_device(report):
        yield "<section><h2>Memory of the GPU in one call</h2>"
        yield '<p class="hint">Memory requested from the engine\'s own pool after the first call; JAX does not report it.</p>'
    else:
        yield "<section><h2>Memory of arrays in one call</h2>"
        yield '<p class="hint">Every buffer that NumPy allocates after the first call.</p>'
    yield '<div class="legend" data-of="memory"></div><div class="chart" id="memory"></div></section>'


def _signs(report: Mapping[str, Any]) -> Iterator[str]:
    if not stands_alone(report):
        yield (
            f'<p class="hint">▼ better, ▲ worse, ? undecided, each against {escape(baseline_in_words(report))}; 95 % intervals in brackets.</p>'
        )


def _case(number: int, case: Mapping[str, Any], *, charted: bool, on_device: bool, timed_beside: bool) -> str:
    layers = ("arrays", "malloc", "Python", *(("GPU",) if on_device else ()))
    beside = BESIDE_HEADINGS if timed_beside else ()
    headings = ("variant", "time a call", *beside, "against the baseline", *layers, "gradient error")
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    chart = (
        f'<details><summary>Every process</summary><div class="legend" data-of="case-{number}"></div>'
        f'<div class="chart" id="case-{number}"></div></details>'
        if charted
        else ""
    )
    rows = "".join(_row(row, on_device=on_device, beside=beside) for row in case_rows(case))
    return (
        f"<article><h3>{escape(case_name(case))}</h3>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{chart}</article>'
    )


def _row(row: Row, *, on_device: bool, beside: Sequence[str]) -> str:
    name = f'<th scope="row">{escape(row.variant)}</th>'
    if row.error:
        columns = 5 + on_device + len(beside)
        return f'<tr class="failed">{name}<td>failed</td><td colspan="{columns}">{escape(row.error)}</td></tr>'
    labelled = {
        "time a call": row.time,
        **(dict(zip(beside, row.beside, strict=True)) if beside else {}),
        "against the baseline": row.against,
        "arrays": row.arrays,
        "malloc": row.malloc,
        "Python": row.python,
        **({"GPU": row.gpu} if on_device else {}),
        "gradient error": row.gradient,
    }
    return f"<tr>{name}{''.join(_cell(label, cell) for label, cell in labelled.items())}</tr>"


def _cell(label: str, cell: Cell) -> str:
    mark = _MARKS.get(cell.outcome)
    marked = f'<span class="mark" aria-label="{cell.outcome}">{mark}</span> ' if mark else ""
    return f'<td data-label="{label}" class="{cell.outcome}"><span>{marked}{escape(cell.text)}</span></td>'


def _left_out(report: Mapping[str, Any]) -> Iterator[str]:
    sentences = left_out(report)
    if not sentences:
        return
    yield '<section><h2>Not measured</h2><p class="hint">Requested, or part of the suite, but not available.</p>'
    yield (
        '<ul class="left-out">' + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul></section>"
    )


def _foot(report: Mapping[str, Any]) -> Iterator[str]:
    facts = report["machine"]["facts"]
    shown = {
        name: facts[name]
        for name in ("cpu", "memory_gib", "system", "kernel", "python", "numpy", "blas", "gpu", "driver")
        if facts.get(name)
    }
    preflight = {name: value for name, value in (report["harness"]["preflight"] or {}).items() if value is not None}
    yield '<section class="record"><h2>Record</h2>'
    for title, values in (
        ("Machine", shown),
        ("Before the run", preflight),
        ("Budget", report["harness"].get("budget") or {}),
    ):
        items = "".join(
            f"<dt>{escape(str(n).replace('_', ' '))}</dt><dd>{escape(str(v))}</dd>" for n, v in values.items()
        )
        yield f"<div><h3>{title}</h3><dl>{items}</dl></div>"
    yield "</section>"


def _json(value: Any) -> str:
    """JSON that ends no script."""
    return json.dumps(value, separators=(",", ":")).replace("</", "<\\/").replace("<!--", "<\\!--")


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
