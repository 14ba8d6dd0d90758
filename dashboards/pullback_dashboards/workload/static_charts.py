"""The plots of the workload page as stills: what the page shows before its script, and what a README embeds."""

from collections.abc import Iterator, Sequence

from pullback_dashboards.charts.badge import badge
from pullback_dashboards.charts.palette import line_style_of
from pullback_dashboards.charts.static_chart import WIDTH, Axes, Curve, CurvePoint, Note, standalone, still
from pullback_dashboards.history import TIERS, Failure, Result
from pullback_dashboards.workload.figure import lower_height, upper_height
from pullback_dashboards.workload.view import (
    Mark,
    Plot,
    WorkloadView,
    disturbed,
    newest_place,
    qualifiers,
    relative_height,
)

_MOST_DRAWN = 90  # marks of a curve


def stills(view: WorkloadView) -> tuple[str, ...]:
    """One still for every plot of the page, in the state that its address names; events stand above the first."""
    notes = tuple(Note(event.place, event.sign, event.tone) for event in view.events if event.tone != "plain")
    return tuple(
        still(_curves(view, plot), _axes(view, plot, _title(plot), notes if number == 0 else ()))
        for number, plot in enumerate(view.drawn)
    )


def _title(plot: Plot) -> str:
    return f"{plot.metric.label}, {plot.tracks[0].variant}" if plot.own else plot.metric.label


def chart(view: WorkloadView, metric: str | None = None, width: int = WIDTH) -> str:
    """The plot of a metric as a file of its own, the first one where none is named."""
    plots = [plot for plot in view.plots if metric is None or plot.metric.name == metric]
    if not plots:
        return standalone((), Axes(f"{view.case}: nothing measured", "", 1, "", ""), width)
    plot = plots[0]
    return standalone(_curves(view, plot), _axes(view, plot, f"{view.case}: {plot.metric.label}", ()), width)


def spoken_of(view: WorkloadView) -> str:
    """The variant that a badge speaks of where none is named: the last of our tiers at the newest commit, or the last of all."""
    newest = newest_place(view.plots)
    tracks = [track for plot in view.plots[:1] for track in plot.tracks]
    there = [track.variant for track in tracks if track.marks and track.marks[-1].place == newest]
    measured = tuple(there) or view.variants
    tiers = [variant for variant in measured if variant in TIERS and variant != view.baseline]
    return (tiers or measured or ("native",))[-1]


def workload_badge(view: WorkloadView, variant: str) -> str:
    """The newest commit's result of a variant's first plot; an older or disturbed one is marked first."""
    marks = [
        mark for plot in view.plots[:1] for track in plot.tracks if track.variant == variant for mark in track.marks
    ]
    name = f"{view.workload} {variant}"
    if not marks:
        return badge(name, "not measured", "plain")
    newest = marks[-1]
    said = "failed" if newest.failure else newest.said
    before = ", ".join(qualifiers(newest, view.commits, newest_place(view.plots)))
    return badge(name, f"{before}: {said}" if before else said, "unsure" if disturbed(newest) else newest.tone)


def _axes(view: WorkloadView, plot: Plot, title: str, notes: tuple[Note, ...]) -> Axes:
    first, last = view.commits[0].short[:7], view.commits[-1].short[:7]
    log = ", log" if plot.log else ""
    if view.state.y == "absolute":
        unit = f" {plot.scale.unit}" if plot.scale.unit else ""
        return Axes(f"{title}{log}", unit, len(view.commits), first, last, log=plot.log, notes=notes)
    if view.against:
        return Axes(
            f"{title}, ÷ {view.against}{log}", "×", len(view.commits), first, last,
            baseline=1.0, baseline_name=view.state.y, log=plot.log, notes=notes,
        )  # fmt: skip
    return Axes(
        f"{title}, variant ÷ {view.baseline}{log}", "×", len(view.commits), first, last,
        baseline=1.0, baseline_name=view.baseline, log=plot.log, notes=notes,
    )  # fmt: skip


def _curves(view: WorkloadView, plot: Plot) -> tuple[Curve, ...]:
    strangers = tuple(v for v in view.variants if v not in TIERS)
    relative = view.state.y == "relative"
    divisor = plot.scale.divisor if view.state.y == "absolute" else 1.0
    return tuple(
        Curve(
            track.variant,
            line_style_of(track.variant, strangers),
            tuple(_spots(view, track.marks, divisor, log=plot.log)),
        )
        for track in plot.tracks
        if not (track.variant == view.baseline and (relative or (view.compares and view.against)))
    )


def _spots(view: WorkloadView, marks: tuple[Mark, ...], divisor: float, *, log: bool) -> Iterator[CurvePoint | None]:
    """The marks of a curve, of many of them those that are not to be seen apart left out; None breaks the line."""
    is_absolute, against = view.state.y == "absolute", view.against
    for mark in sparse(marks):
        if isinstance(mark.result, Failure):
            yield None
        elif is_absolute:
            if not (log and mark.result.value <= 0):
                yield CurvePoint(mark.place, mark.result.value / divisor)
        elif against:
            change = view.change_of(mark)
            yield None if change is None else CurvePoint(mark.place, change, hollow=mark.outcome == "ambiguous")
        elif (height := relative_height(mark, log=log)) is not None:
            low, high = lower_height(mark), upper_height(mark)
            ends = None if low is None or high is None else (low, high)
            yield CurvePoint(mark.place, height, ends, hollow=mark.outcome == "ambiguous")
        else:
            yield None


def sparse(marks: Sequence[Mark]) -> list[Mark]:
    """Thinned marks, to keep the page small: failures, and the smallest, the largest and the last of each bucket."""
    if len(marks) <= _MOST_DRAWN:
        return list(marks)
    heights = [_height(mark.result) for mark in marks]
    gaps = {at for at, height in enumerate(heights) if height is None}
    buckets = _MOST_DRAWN // 3
    for number in range(buckets):
        begin, end = number * len(marks) // buckets, (number + 1) * len(marks) // buckets
        part = [height for height in heights[begin:end] if height is not None]
        if part:
            last = next(at for at in reversed(range(begin, end)) if heights[at] is not None)
            gaps |= {heights.index(min(part), begin, end), heights.index(max(part), begin, end), last}
    return [marks[at] for at in sorted(gaps)]


def _height(result: Result) -> float | None:
    if isinstance(result, Failure):
        return None
    return result.value if result.ratio.log_ratio is None else result.ratio.log_ratio
