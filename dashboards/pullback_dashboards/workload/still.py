"""The plots of the workload page as stills: what the page shows before its script, and what a README embeds."""

from collections.abc import Iterator

from pullback_dashboards.charts.badge import badge
from pullback_dashboards.charts.palette import BASELINE, look_of
from pullback_dashboards.charts.still import Axes, Curve, Spot, standalone, still
from pullback_dashboards.history import TIERS
from pullback_dashboards.workload.figure import lower_height, relative_height, upper_height
from pullback_dashboards.workload.view import Mark, Plot, WorkloadView


def stills(view: WorkloadView) -> tuple[str, ...]:
    """One still for every plot of the page, of ratios to the baseline."""
    return tuple(still(_curves(view, plot), _axes(view, plot.metric.label)) for plot in view.plots)


def chart(view: WorkloadView, metric: str | None = None) -> str:
    """The plot of a metric as a file of its own, the first one where none is named."""
    plots = [plot for plot in view.plots if metric is None or plot.metric.name == metric]
    if not plots:
        return standalone((), Axes(f"{view.case}: nothing measured", "", 1, "", ""))
    plot = plots[0]
    return standalone(_curves(view, plot), _axes(view, f"{view.case}: {plot.metric.label}"))


def workload_badge(view: WorkloadView, variant: str) -> str:
    """What the newest commit says of a variant's first plot."""
    marks = [
        mark for plot in view.plots[:1] for track in plot.tracks if track.variant == variant for mark in track.marks
    ]
    name = f"{view.workload} {variant}"
    if not marks:
        return badge(name, "not measured", "plain")
    return badge(name, "failed" if marks[-1].failure else marks[-1].words, marks[-1].tone)


def _axes(view: WorkloadView, title: str) -> Axes:
    first, last = view.commits[0].short[:7], view.commits[-1].short[:7]
    return Axes(
        f"{title}, variant ÷ {BASELINE}", "×", len(view.commits), first, last, baseline=1.0, baseline_name=BASELINE
    )


def _curves(view: WorkloadView, plot: Plot) -> tuple[Curve, ...]:
    strangers = tuple(v for v in view.variants if v not in TIERS)
    return tuple(
        Curve(track.variant, look_of(track.variant, strangers), tuple(_spots(track.marks)))
        for track in plot.tracks
        if track.variant != BASELINE
    )


def _spots(marks: tuple[Mark, ...]) -> Iterator[Spot | None]:
    for mark in marks:
        height = None if mark.failure else relative_height(mark, log=False)
        if height is None:
            yield None
        else:
            low, high = lower_height(mark), upper_height(mark)
            yield Spot(mark.place, height, low, high, hollow=mark.outcome == "ambiguous")
