"""The plots of the workload page as one Plotly figure: one row per metric over one shared axis of commits.

Data in, dict out. Bands are intervals; hollow markers are ambiguous, and a failed commit is a struck line with its
reason, never a point. Under the plots a lane each says where counts changed and what comparisons found. Colours are the style
sheet's custom properties. What a pointer over a mark tells of its commit stands once, under `commits`, for all marks there:
the script of the page puts the two together.
"""

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from pullback_dashboards import links
from pullback_dashboards.charts.escaping import shortened
from pullback_dashboards.charts.layout import CONFIG, Figure, shared_layout
from pullback_dashboards.charts.palette import LineStyle, line_style_of
from pullback_dashboards.history import TIERS, Commit, Metric
from pullback_dashboards.workload.annotations import LANES, Event, Lane
from pullback_dashboards.workload.view import Mark, Plot, State, TableRow, Track, WorkloadView, relative_height
from pullback_service.visible_text import visible

_ROW, _OWN, _LANE, _GAP, _AROUND = (
    230,
    120,
    22,
    34,
    100,
)  # pixels: a plot, one of one variant, a lane of events, between two of them, legend and ticks
_NARROW_AROUND = 130
_NARROW, _SWATCH, _LETTER, _NAME = 290, 45, 7, 19  # pixels of a legend: its width, before a name, a letter, a line
_MOST_TICKS = 12
_MOST_SENTENCES = 8


def workload_figure(view: WorkloadView) -> Figure:
    """The figure with `data`, `layout` and `config`, and under `narrow` what a narrow page changes of the layout."""
    layout = shared_layout()
    axis_x, axis_y = layout.pop("xaxis"), layout.pop("yaxis")
    strangers = tuple(v for v in view.variants if v not in TIERS)
    places = _positions(view)
    data: list[Figure] = []
    annotations: list[Figure] = []
    shapes: list[Figure] = []
    rows, named = len(view.drawn), set[str]()
    lanes = _lanes(view)
    domains = _domains(view, len(lanes))
    for number, plot in enumerate(view.drawn):
        name = "" if number == 0 else str(number + 1)
        drawing = _Row(view, plot, f"x{name}", f"y{name}", places, strangers, frozenset(named))
        data += drawing.traces()
        named |= {track.variant for track in plot.tracks}
        layout[f"xaxis{name}"] = axis_x | _x_axis(view, places) | {
            "anchor": f"y{name}", "matches": "x" if name else None,
            "showticklabels": number == rows - 1 and not lanes,
        }  # fmt: skip
        layout[f"yaxis{name}"] = axis_y | {
            "domain": domains[number],
            "anchor": f"x{name}",
            "type": "log" if plot.log else "linear",
            "title": axis_y["title"] | {"text": drawing.title},
            **drawing.ticks(),
        }
        if view.state.y == "relative":
            shapes.append(_baseline(f"y{name}", view.baseline))
    if lanes and rows:
        name = str(rows + 1)
        layout[f"xaxis{name}"] = axis_x | _x_axis(view, places) | {"anchor": f"y{name}", "matches": "x"}
        layout[f"yaxis{name}"] = axis_y | _lane_axis(lanes) | {"domain": domains[rows], "anchor": f"x{name}"}
        data += [_lane(view, lane, at, name, places) for at, lane in enumerate(lanes)]
    for row in view.rows:
        if row.failure:
            shapes.append(_struck(places[row.place]))
            annotations.append(_reason(row, places[row.place], "✕ failed", row.failure))
        elif failed := _failed_variants(row):
            reasons = "; ".join(f"{variant}: {reason}" for variant, reason in failed.items())
            annotations.append(_reason(row, places[row.place], f"✕ {', '.join(failed)}", reasons))
    layout |= {"annotations": annotations, "shapes": shapes, "height": heights(view)["wide"]}
    narrow: Figure = {
        "margin": layout["margin"] | {"l": 48, "r": 8, "t": 64 + _legend_overhang(view)},
        "height": heights(view)["narrow"],
    }
    for axis in (name for name in layout if name.startswith("xaxis") and "tickvals" in layout[name]):
        for ticks in ("tickvals", "ticktext"):
            narrow[f"{axis}.{ticks}"] = layout[axis][ticks][::-3][::-1]
    return {
        "data": data,
        "layout": _without_none(layout),
        "config": CONFIG,
        "narrow": narrow,
        "commits": {str(place): _commit(view, place) for place in sorted(_used(view))},
    }


def heights(view: WorkloadView) -> dict[str, int]:
    """The height of the figure, wide and narrow, so that its room is kept before its script has run."""
    inside = _inside(view, len(_lanes(view)) if view.plots else 0)
    return {"wide": _AROUND + inside, "narrow": _NARROW_AROUND + _legend_overhang(view) + inside}


def _legend_overhang(view: WorkloadView) -> int:
    """The additional height of many variants' names on a narrow page, beyond the two lines that have room anyway."""
    columns = max(1, _NARROW // (max(map(len, view.variants), default=0) * _LETTER + _SWATCH))
    return max(0, math.ceil(len(view.variants) / columns) - 2) * _NAME


@dataclass(frozen=True)
class _Row:
    """One metric of the figure: its traces and its vertical axis."""

    view: WorkloadView
    plot: Plot
    x: str
    y: str
    places: list[float | str]
    strangers: tuple[str, ...]
    named: frozenset[str]
    """Variants that have their place in the legend already."""

    @property
    def state(self) -> State:
        return self.view.state

    @property
    def title(self) -> str:
        metric, log = self.plot.metric, ", log" if self.plot.log else ""
        if self.state.y == "relative":
            return f"{metric.label}, variant ÷ {self.view.baseline}{log}"
        if self.view.against:
            return f"{metric.label}, ÷ {self.view.against}{log}"
        if self.plot.own:
            return f"{metric.label}, {self.plot.scale.unit}"
        return f"{metric.label}, {self.plot.scale.unit}{log}" if self.plot.scale.unit else f"{metric.label}{log}"

    def ticks(self) -> Figure:
        if self.plot.log:
            # With so few, one or two powers of ten have 1, 2 and 5: all digits would lie over each other. What stands
            # behind numbers is written behind powers alone, so that nothing does.
            return (
                {"tickformat": "~g", "nticks": 3}
                if not self.view.against
                else {"tickformat": "~g", "nticks": 6, "ticksuffix": "×"}
            )
        if self.state.y == "relative":
            heights = [upper_height(mark) or 0.0 for track in self.plot.tracks for mark in track.marks]
            return {"ticksuffix": "×", "tickformat": "~g", "range": [-0.03, _rounded(max([1.0, *heights]) * 1.1)]}
        return {"rangemode": "tozero", "tickformat": "~g"}

    def traces(self) -> Iterator[Figure]:
        for track in self.plot.tracks:
            marks = [mark for mark in track.marks if self._height(mark) is not None]
            if not marks:
                continue  # as of the baseline, which is the line at one
            style = line_style_of(track.variant, self.strangers)
            if self.state.y == "relative" and any(mark.low != mark.high for mark in marks):
                yield self._band(track, style)
            yield self._line(track.variant, marks, track, style)

    def _height(self, mark: Mark) -> float | None:
        if mark.failure:
            return None
        if self.state.y == "relative":
            return relative_height(mark, log=self.plot.log)
        if self.view.against:
            return self.view.change_of(mark)
        return None if mark.value is None else mark.value / self.plot.scale.divisor

    def _line(self, variant: str, marks: Sequence[Mark], track: Track, style: LineStyle) -> Figure:
        drawn = self._with_breaks(track)
        heights = [None if mark is None else _rounded(self._height(mark)) for mark in drawn]
        return {
            "type": "scatter",
            "mode": "lines+markers",
            "name": html.escape(visible(variant), quote=False),
            "legendgroup": variant,
            "showlegend": variant not in self.named,
            "xaxis": self.x,
            "yaxis": self.y,
            "x": [self.places[(mark or marks[0]).place] for mark in drawn],
            "y": heights,
            "connectgaps": False,
            "line": {"color": style.colour, "width": 2, "dash": style.dash},
            "marker": {
                "color": style.colour,
                "size": 7 if len(drawn) <= 40 else 4,
                "symbol": [_symbol(mark, style) for mark in drawn],
                "line": {"color": style.colour, "width": 1.5},
            },
            "customdata": [None if mark is None else self._hover(mark) for mark in drawn],
            "hovertemplate": "%{customdata[0]}<extra></extra>",
        }

    def _band(self, track: Track, style: LineStyle) -> Figure:
        """One closed outline per stretch without a failure."""
        x: list[float | str | None] = []
        y: list[float | None] = []
        for real, stretch in groupby(self._with_breaks(track), key=lambda mark: mark is not None):
            if not real:
                continue
            marks = [mark for mark in stretch if mark is not None and mark.log_ratio is not None]
            if not marks:
                continue
            there = [(self.places[mark.place], upper_height(mark)) for mark in marks]
            back = [(self.places[mark.place], lower_height(mark)) for mark in reversed(marks)]
            outline = [*there, *back, there[0]]
            x += [*([None] if x else []), *(place for place, _ in outline)]
            y += [*([None] if y else []), *(height for _, height in outline)]
        return {
            "type": "scatter", "mode": "lines", "fill": "toself", "fillcolor": style.band, "line": {"width": 0},
            "hoverinfo": "skip", "showlegend": False, "legendgroup": track.variant, "name": track.variant,
            "xaxis": self.x, "yaxis": self.y, "x": x, "y": y,
        }  # fmt: skip

    def _with_breaks(self, track: Track) -> list[Mark | None]:
        """The marks of a track with a break where one failed: a line across a failure would claim a measurement."""
        drawn: list[Mark | None] = []
        for mark in track.marks:
            if self._height(mark) is not None:
                drawn.append(mark)
            elif drawn and drawn[-1] is not None:
                drawn.append(None)
        return drawn

    def _hover(self, mark: Mark) -> list[str | int]:
        lines = [f"<b>{_text(mark.variant)}</b>  {_amount(mark, self.plot.metric)}", _text(mark.words)]
        if mark.since:
            lines.append(f"since the commit before: {mark.since}")
            lines.append(_text(mark.since_reason))
        lines.append(mark.remark)
        return ["<br>".join(line for line in lines if line.strip()), mark.place]


def _positions(view: WorkloadView) -> list[float | str]:
    """The positions of commits on the shared axis: their places, or dates where all commits have one."""
    if view.state.x == "date":
        dates = [commit.authored_at for commit in view.commits]
        if all(dates):
            return [date.isoformat() for date in dates if date]
    return [float(place) for place in range(len(view.commits))]


def _x_axis(view: WorkloadView, places: Sequence[float | str]) -> Figure:
    if places and isinstance(places[0], str):
        return {"type": "date"}
    used = sorted({row.place for row in view.rows})
    step = max(1, math.ceil(len(used) / _MOST_TICKS))
    ticks = used[::-1][::step][::-1]  # the newest commit always has its tick
    margin = max(0.3, len(view.commits) * 0.02)
    ends = (used[0], used[-1]) if used else (0, 0)
    return {
        "type": "linear",
        "tickmode": "array",
        "tickvals": [float(place) for place in ticks],
        "ticktext": [view.commits[place].short[:7] for place in ticks],
        "range": [ends[0] - margin, ends[1] + margin],
    }


def _room(view: WorkloadView) -> list[int]:
    """The height of each plot."""
    return [_OWN if plot.own else _ROW for plot in view.drawn]


def _inside(view: WorkloadView, lanes: int) -> int:
    """The height of everything between legend and ticks."""
    room = _room(view)
    return sum(room) + max(0, len(room) - 1) * _GAP + (_GAP + lanes * _LANE if lanes else 0)


def _domains(view: WorkloadView, lanes: int) -> list[list[float]]:
    """The share of the height that each plot has, from the top, and then the lanes together."""
    whole, room = max(1, _inside(view, lanes)), _room(view)
    tops = [top + number * _GAP for number, top in enumerate(accumulate(room, initial=0))]
    results = [
        [round(1 - (top + own) / whole, 4), round(1 - top / whole, 4)] for top, own in zip(tops, room, strict=False)
    ]
    return [[max(0.0, low), high] for low, high in results] + (
        [[0.0, round(lanes * _LANE / whole, 4)]] if lanes else []
    )


def _lanes(view: WorkloadView) -> list[Lane]:
    """The lanes that have events, from the bottom."""
    there = {event.lane for event in view.events}
    return [lane for lane in reversed(LANES) if lane in there]


def _lane_axis(lanes: Sequence[Lane]) -> Figure:
    return {
        "type": "linear", "range": [-0.5, len(lanes) - 0.5], "fixedrange": True, "showgrid": False,
        "tickmode": "array", "tickvals": list(range(len(lanes))), "ticktext": list(lanes), "title": {"text": ""},
    }  # fmt: skip


_EVENT_SYMBOLS = {
    "worse": "triangle-up", "better": "triangle-down", "likely-worse": "triangle-up-open",
    "likely-better": "triangle-down-open", "failed": "x", "unsure": "circle-open", "plain": "line-ew-open",
}  # fmt: skip
_EVENT_COLOURS = {
    "worse": "var(--worse)", "better": "var(--better)", "likely-worse": "var(--worse)", "likely-better": "var(--better)",
    "failed": "var(--failed)",
}  # fmt: skip


def _lane(view: WorkloadView, lane: Lane, at: int, axis: str, places: list[float | str]) -> Figure:
    """The events of a lane: a sign tells worse from better by its shape, a pointer over it what happened."""
    events = [event for event in view.events if event.lane == lane]
    return {
        "type": "scatter", "mode": "markers", "name": lane, "showlegend": False, "xaxis": f"x{axis}", "yaxis": f"y{axis}",
        "x": [places[event.place] for event in events],
        "y": [at] * len(events),
        "marker": {
            "size": 9,
            "symbol": [_EVENT_SYMBOLS[event.tone] for event in events],
            "color": [_EVENT_COLOURS.get(event.tone, "var(--ink-3)") for event in events],
            "line": {"width": 1.5, "color": [_EVENT_COLOURS.get(event.tone, "var(--ink-3)") for event in events]},
        },
        "customdata": [[_sentences(event), event.place] for event in events],
        "hovertemplate": "%{customdata[0]}<extra></extra>",
    }  # fmt: skip


def _sentences(event: Event) -> str:
    lines = [_text(sentence) for sentence in event.sentences[:_MOST_SENTENCES]]
    more = len(event.sentences) - len(lines)
    return "<br>".join([*lines, f"and {more} more"] if more else lines)


def _used(view: WorkloadView) -> set[int]:
    """Places of commits with a mark or an event."""
    marks = {mark.place for plot in view.plots for track in plot.tracks for mark in track.marks}
    return marks | {event.place for event in view.events}


def _commit(view: WorkloadView, place: int) -> list[str]:
    """The text of a commit for a pointer over its mark, and the address behind a click."""
    commit = view.commits[place]
    name = f"<span style='font-family:monospace'>{commit.short}</span>  {_text(shortened(commit.title or '', 80))}"
    address = links.case(view.project, commit.sha, view.case, machine=view.state.machine)
    return [f"{name}<br>{_text(_who_and_when(commit))}", address]


def _baseline(axis: str, name: str) -> Figure:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": axis, "y0": 1, "y1": 1, "layer": "below",
        "line": {"color": "var(--series-0)", "width": 1.5, "dash": "dot"},
        "label": {"text": name, "textposition": "start", "yanchor": "top", "font": {"size": 11, "color": "var(--ink-3)"}},
    }  # fmt: skip


def _struck(place: float | str) -> Figure:
    return {
        "type": "line", "xref": "x", "x0": place, "x1": place, "yref": "paper", "y0": 0, "y1": 1, "layer": "above",
        "line": {"color": "var(--failed)", "width": 1, "dash": "dash"},
    }  # fmt: skip


def _reason(row: TableRow, place: float | str, text: str, reason: str) -> Figure:
    return {
        "xref": "x", "x": place, "yref": "paper", "y": 0, "yanchor": "bottom", "text": _text(text), "showarrow": False,
        "textangle": -90, "xanchor": "right", "font": {"size": 11, "color": "var(--failed)"},
        "hovertext": f"{row.commit.short} failed: {_text(reason)}",
    }  # fmt: skip


def _failed_variants(row: TableRow) -> dict[str, str]:
    """The variants that failed at a commit where others did not, with their reasons."""
    return {mark.variant: mark.failure for mark in row.marks.values() if mark.failure}


def _symbol(mark: Mark | None, style: LineStyle) -> str:
    hollow = mark is not None and mark.outcome == "ambiguous" and not style.symbol.endswith("-open")
    return f"{style.symbol}-open" if hollow else style.symbol


def _amount(mark: Mark, metric: Metric) -> str:
    doubt = f" ({mark.doubt})" if mark.doubt else ""
    return f"{mark.factor}{doubt}  {mark.shown}" if mark.factor else f"{mark.shown} {metric.label}"


def upper_height(mark: Mark) -> float | None:
    """The upper end of the factor's interval."""
    ratio = mark.ratio
    bound = ratio.log_ratio if ratio.high is None else ratio.high
    return None if bound is None else _rounded(math.exp(bound))


def lower_height(mark: Mark) -> float | None:
    """The lower end of the factor's interval."""
    ratio = mark.ratio
    bound = ratio.log_ratio if ratio.low is None else ratio.low
    return None if bound is None else _rounded(math.exp(bound))


def _rounded(height: float | None) -> float | None:
    """Six significant digits: more than a screen can show, a third of the page's weight."""
    return None if height is None else float(f"{height:.6g}")


def _who_and_when(commit: Commit) -> str:
    when = f"{commit.authored_at:%Y-%m-%d %H:%M %Z}".strip() if commit.authored_at else ""
    return ", ".join(part for part in (commit.author, when) if part)


def _text(raw: str) -> str:
    """Plotly reads a little HTML in its labels; names of commits and people must not be read so."""
    return html.escape(visible(raw), quote=False)


def _without_none(layout: Figure) -> Figure:
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in layout.items()
        if value is not None
    }
