"""Stills: a metric of several variants across commits as static SVG, for the page before its script and for READMEs.

The same marks as the interactive figure: bands are intervals, hollow marks are ambiguous, a failure breaks the line, and
the baseline is a dotted line. Names stand at the ends of their lines, pushed apart where they would overlap.
"""

import math
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from typing import Any, NamedTuple

from pullback_dashboards.charts.escaping import escape, shortened
from pullback_dashboards.charts.palette import LineStyle
from pullback_service.ratio import Ratio

WIDTH, HEIGHT = 860, 250
BESIDE_OTHERS = 600  # the width of one of two charts that share a page, so that its letters keep their size
NARROWEST, WIDEST = 420, 1600
_LEFT, _TOP, _BOTTOM = 58, 26, 26
_MARGIN = 8  # where a title begins that is too long above the curves
_RIGHT, _WIDEST_RIGHT = 132, 240  # room for names: as much as they need, between these
_LETTER = 8.3  # pixels of a bold letter of twelve, in the widest of the usual fonts
_LABEL = 14  # pixels that a name needs for itself
_DASHES = {
    "solid": "",
    "dash": "7 4",
    "dot": "1 4",
    "dashdot": "7 4 1 4",
    "longdash": "11 4",
    "longdashdot": "11 4 1 4",
}
_TONES = {"better": "better-ink", "worse": "worse-ink", "failed": "failed"}
_MOST_MARKS = 60  # more of them are a thick line; then only the line and its end are drawn


class CurvePoint(NamedTuple):
    """One commit of a curve: its place, the height and, where there is one, its interval."""

    place: int
    height: float
    ends: tuple[float, float] | None = None
    hollow: bool = False

    def plain(self) -> dict[str, Any]:
        """Representation in JSON."""
        low, high = self.ends or (None, None)
        return {"place": self.place, "height": self.height, "low": low, "high": high, "hollow": self.hollow}


def spot_of(place: int, log_ratio: float, ratio: Ratio, *, hollow: bool) -> CurvePoint:
    """The factor of a ratio as a spot."""
    ends = None if ratio.low is None or ratio.high is None else (math.exp(ratio.low), math.exp(ratio.high))
    return CurvePoint(place, math.exp(log_ratio), ends, hollow)


@dataclass(frozen=True)
class Curve:
    """One variant; None breaks the line."""

    name: str
    look: LineStyle
    spots: tuple[CurvePoint | None, ...]


@dataclass(frozen=True)
class Note:
    """A sign at a commit, above the curves: something happened there."""

    place: int
    sign: str
    tone: str


@dataclass(frozen=True)
class Axes:
    """The labels around the curves: a title, the unit behind every height, the first and last commit, the baseline.

    Zero is always among the heights, for a factor is a share of the baseline; on a `log` axis zero and less have no place.
    """

    title: str
    unit: str
    count: int
    first: str
    last: str
    baseline: float | None = None
    baseline_name: str = ""
    log: bool = False
    notes: tuple[Note, ...] = ()


def still(curves: Sequence[Curve], axes: Axes, width: int = WIDTH) -> str:
    """The SVG element, coloured by the custom properties of the page it stands in, for a place about as wide as `width`."""
    return _element(curves, axes, width, "")


def standalone(curves: Sequence[Curve], axes: Axes, width: int = WIDTH) -> str:
    """The same as a file: with its own colours, light and dark by the reader's wish, and a name for those who do not see it."""
    style = f"<style>{_COLOURS}</style>"
    ground = f'<rect width="{width}" height="{HEIGHT}" rx="6" fill="var(--surface)"/>'
    return _element(curves, axes, width, f"<title>{escape(axes.title)}</title>{style}{ground}")


def _element(curves: Sequence[Curve], axes: Axes, width: int, head: str) -> str:
    frame = _Frame.around(curves, axes, width)
    # Without curves there is nothing to be measured by a grid: the title says why.
    parts = (
        [f'<text x="{_LEFT}" y="{HEIGHT / 2}" fill="var(--ink-3)">{escape(axes.title)}</text>']
        if not curves
        else [
            *_grid(frame, axes, width, inline=not head),
            *(part for curve in curves for part in _curve(curve, frame)),
            *_names(curves, frame, axes, width),
        ]
    )
    role = 'role="img"' if head else 'aria-hidden="true" focusable="false"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="still" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="xMinYMid" {role} '
        f'font-family="system-ui, sans-serif" font-size="12">{head}{"".join(parts)}</svg>'
    )


@dataclass(frozen=True)
class _Frame:
    """The canvas positions of places and heights."""

    bottom: float
    top: float
    ticks: tuple[float, ...]
    count: int
    log: bool
    right: int

    @classmethod
    def around(cls, curves: Sequence[Curve], axes: Axes, width: int) -> "_Frame":
        spots = [spot for curve in curves for spot in curve.spots if spot]
        heights = [value for spot in spots for value in (spot.height, *(spot.ends or ()))]
        heights += [axes.baseline] if axes.baseline is not None else []
        count = max(1, axes.count)
        longest = max((len(curve.name) for curve in curves), default=0)
        least = round(_RIGHT * width / WIDTH)
        right = width - min(_WIDEST_RIGHT, max(least, round(longest * _LETTER) + 12))
        if axes.log:
            known = [height for height in heights if height > 0] or [1.0]
            low, high = min(known) / 1.08, max(known) * 1.08
            return cls(math.log(low), math.log(high), tuple(_log_ticks(low, high)), count, log=True, right=right)
        low, high = min([0.0, *heights]) * 1.05, max([0.0, *heights]) * 1.05
        if low == high:
            high = 1.0
        step = _round_step((high - low) / 4)
        ticks = tuple(number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1))
        return cls(low, high, ticks, count, log=False, right=right)

    def x(self, place: int) -> float:
        return self.xs([place])[0]

    def y(self, height: float) -> float:
        return self.ys([height])[0]

    def xs(self, places: Sequence[int]) -> list[float]:
        width, last = self.right - _LEFT, self.count - 1
        return [_LEFT + place / last * width for place in places] if last else [_LEFT + width / 2 for _ in places]

    def ys(self, heights: Sequence[float]) -> list[float]:
        bottom, span, foot, room = self.bottom, self.top - self.bottom, HEIGHT - _BOTTOM, HEIGHT - _TOP - _BOTTOM
        if self.log:
            heights = [math.log(height) if height > 0 else bottom for height in heights]
        return [foot - (at - bottom) / span * room for at in heights]


def _grid(frame: _Frame, axes: Axes, width: int, *, inline: bool) -> Iterator[str]:
    """Heights with their lines. In a page they are said once more amid the chart, for phones, where its left half is away."""
    start = _LEFT if _LEFT + len(axes.title) * _LETTER <= width else _MARGIN
    title = escape(shortened(axes.title, int((width - start) / _LETTER)))
    yield f'<text class="still-name" x="{start}" y="16" fill="var(--ink-2)" font-weight="600">{title}</text>'
    right = frame.right
    for height in frame.ticks:
        y = frame.y(height)
        yield f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="var(--rule)"/>'
        label = f"{height:.6g}{escape(axes.unit)}"
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="var(--ink-3)">{label}</text>'
        if inline:
            yield f'<text class="still-height" x="{width / 2:.0f}" y="{y - 3:.1f}">{label}</text>'
    for note in axes.notes:
        yield (
            f'<text x="{frame.x(note.place):.1f}" y="{_TOP + 6}" text-anchor="middle" font-size="10" '
            f'fill="var(--{_TONES.get(note.tone, "ink-3")})">{escape(note.sign)}</text>'
        )
    foot = HEIGHT - 8
    yield f'<text x="{_LEFT}" y="{foot}" fill="var(--ink-3)">{escape(axes.first)}</text>'
    if axes.count > 1:
        yield f'<text x="{right}" y="{foot}" text-anchor="end" fill="var(--ink-3)">{escape(axes.last)}</text>'
    if axes.baseline is not None:
        y = frame.y(axes.baseline)
        yield f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="var(--series-0)" stroke-width="1.5" stroke-dasharray="1 4"/>'


def _curve(curve: Curve, frame: _Frame) -> Iterator[str]:
    drawn = [spot for spot in curve.spots if spot]
    colour = curve.look.colour
    for real, stretch in groupby(curve.spots, key=lambda spot: spot is not None):
        spots = [spot for spot in stretch if spot] if real else []
        across = [f"{x:.1f}" for x in frame.xs([spot.place for spot in spots])]
        banded = [(x, *s.ends) for x, s in zip(across, spots, strict=True) if s.ends and s.ends[0] != s.ends[1]]
        if len(banded) > 1:
            there, lows, highs = zip(*banded, strict=True)
            outline = _path([*there, *there[::-1]], frame.ys([*highs, *lows[::-1]]))
            yield f'<path d="{outline}Z" fill="{curve.look.band}"/>'
        if len(spots) > 1:
            dashes = _DASHES[curve.look.dash]
            dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
            line = _path(across, frame.ys([spot.height for spot in spots]))
            yield f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"{dashed}/>'
    marked = drawn if len(drawn) <= _MOST_MARKS else drawn[-1:]
    xs, ys = frame.xs([spot.place for spot in marked]), frame.ys([spot.height for spot in marked])
    for spot, x, y in zip(marked, xs, ys, strict=True):
        inside = "var(--surface)" if spot.hollow else colour
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{inside}" stroke="{colour}" stroke-width="1.5"/>'


def _names(curves: Sequence[Curve], frame: _Frame, axes: Axes, width: int) -> Iterator[str]:
    """The names of the curves and of the baseline beside their ends, each a line or more below the one above."""
    ends = [
        (frame.y(last.height), curve.name, f'fill="{curve.look.colour}" font-weight="600"')
        for curve in curves
        if (last := _last(curve))
    ]
    if axes.baseline is not None:
        ends.append((frame.y(axes.baseline), axes.baseline_name, 'fill="var(--ink-3)"'))
    below, lowest = float(_TOP), HEIGHT - 8 - _LABEL * len(ends)
    for y, name, ink in sorted(ends, key=lambda end: end[0]):
        lowest += _LABEL
        below = min(max(y + 4, below + _LABEL), lowest)
        short = shortened(name, round((width - frame.right - 12) / _LETTER))
        yield f'<text x="{frame.right + 8}" y="{below:.1f}" {ink}>{escape(short)}</text>'


def _last(curve: Curve) -> CurvePoint | None:
    return next((spot for spot in reversed(curve.spots) if spot), None)


def _log_ticks(low: float, high: float) -> Iterator[float]:
    """Axis ticks: 1, 2 and 5 times powers of ten within the range; its ends if there are fewer than two."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in (1, 2, 5) if low <= factor * 10.0**power <= high]
    if len(ticks) > 8:
        ticks = [tick for tick in ticks if math.log10(tick) == round(math.log10(tick))]
    yield from ticks if len(ticks) > 1 else (float(f"{low * 1.08:.2g}"), float(f"{high / 1.08:.2g}"))


def _round_step(least: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= least * 0.999)


def _path(xs: Sequence[str], ys: Sequence[float]) -> str:
    return "M" + "L".join([f"{x} {y:.1f}" for x, y in zip(xs, ys, strict=True)])


# The style sheet's tokens that a still uses, for files that stand alone.
LIGHT = (
    "--better:#0a68b4;--worse:#d3590a;--better-ink:#0b4f8a;--worse-ink:#93390a;--failed:#8a1c3b;--surface:#fff;--ink-2:#454c54;--ink-3:#616872;--rule:#e4e4df;--series-0:#6b7280;--series-1:#0072b2;--series-2:#007a5e;"
    "--series-3:#b84a00;--series-4:#8352a3;--series-5:#806400;--series-6:#b02e6c;--series-7:#4b4fc2;--series-8:#556a2a;"
    "--band-1:rgb(0 114 178/.16);--band-2:rgb(0 122 94/.16);--band-3:rgb(184 74 0/.16);--band-4:rgb(131 82 163/.16);"
    "--band-5:rgb(128 100 0/.16);--band-6:rgb(176 46 108/.16);--band-7:rgb(75 79 194/.16);--band-8:rgb(85 106 42/.16)"
)
_DARK = (
    "--better:#3f9be6;--worse:#ef7d2e;--better-ink:#9ccbf7;--worse-ink:#fbb583;--failed:#ff8fa9;--surface:#181c20;--ink-2:#bcc3cb;--ink-3:#98a1ab;--rule:#2a3037;--series-0:#98a1ab;--series-1:#55aae6;--series-2:#37c79c;"
    "--series-3:#ff8c4d;--series-4:#c89ce2;--series-5:#d6b530;--series-6:#f080b3;--series-7:#a3a6ff;--series-8:#a9c06a;"
    "--band-1:rgb(85 170 230/.2);--band-2:rgb(55 199 156/.2);--band-3:rgb(255 140 77/.2);--band-4:rgb(200 156 226/.2);"
    "--band-5:rgb(214 181 48/.2);--band-6:rgb(240 128 179/.2);--band-7:rgb(163 166 255/.2);--band-8:rgb(169 192 106/.2)"
)
_COLOURS = f"svg{{{LIGHT}}}@media(prefers-color-scheme:dark){{svg{{{_DARK}}}}}"
COLOURS_HASH = f"sha256-{b64encode(sha256(_COLOURS.encode()).digest()).decode()}"
"""By which a content security policy knows the style of a file that stands alone."""
