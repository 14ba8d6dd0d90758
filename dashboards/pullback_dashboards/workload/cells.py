"""The cells of the workload page's table as HTML.

A page has two hundred, and a macro takes three times as long for one: each of its expressions is looked up, made visible,
escaped and wrapped by functions of their own.
"""

from markupsafe import Markup, escape

from pullback_dashboards.rendering import unbroken
from pullback_dashboards.wording import factors
from pullback_dashboards.workload.view import Column, Mark, WorkloadView
from pullback_service.visible_text import visible


def cell(view: WorkloadView, mark: Mark | None, column: Column) -> Markup:
    """A variant in a metric at a commit: its factor or value, how sure that is, and what it did since the commit before."""
    return Markup(_cell(view, mark, column))  # noqa: S704 - texts are escaped; factors, signs and tones are words of ours


def _cell(view: WorkloadView, mark: Mark | None, column: Column) -> str:
    head = f'<td data-label="{_text(column.label)}" class="number'
    if mark is None:
        return f'{head} dim{column.edge}">–</td>\n'
    if mark.failure:
        return f'{head} failed{column.edge}" title="{_text(mark.failure)}">✕ failed</td>\n'
    factor, tone, words, remark = mark.factor, mark.tone, _text(mark.words), mark.remark
    unsure = " unsure" if tone == "unsure" else ""
    sign = f'<span class="mark {tone}-ink" aria-hidden="true">{mark.sign}</span>' if mark.sign else ""
    if factor:
        below: str = unbroken(mark.doubt or mark.shown)
    elif column.variant == view.baseline:
        below = "baseline"
    else:
        below = words if view.compares else ""
    return (
        f'{head}{column.edge}{unsure}"\ntitle="{words}{f", {remark}" if remark else ""}">\n'
        f'{sign} {factor or _text(mark.shown)}\n<span class="sub">{below}</span>\n{_since(mark)}</td>\n'
    )


def _since(mark: Mark) -> str:
    since = mark.since
    if not since or since == "unchanged":
        return ""
    tone, reason = mark.since_tone, mark.since_reason
    ink = f" {tone}-ink" if tone else ""
    title = f' title="{_text(reason)}"' if reason else ""
    return f'<span class="sub{ink}"{title}>Δ {_text(since)}{f" {factors.sign(tone)}" if tone else ""}</span>\n'


def _text(text: str) -> Markup:
    return escape(visible(text))
