"""`/help`: reading numbers and charts, bringing numbers here, what goes on a README or a board, and the glossary."""

import math
from dataclasses import dataclass

from fastapi import Request, Response

from pullback_dashboards.charts.badge import badge
from pullback_dashboards.charts.palette import line_style_of
from pullback_dashboards.charts.sparkline import Tick, sparkline
from pullback_dashboards.charts.static_chart import Axes, Curve, CurvePoint, still
from pullback_dashboards.charts.strip import Groups, strip
from pullback_dashboards.current_project import ComingFrom
from pullback_dashboards.rendering import json_response, page
from pullback_dashboards.routers import page_router
from pullback_dashboards.wording.glossary import Word, glossary
from pullback_service.ratio import Ratio

router = page_router()

# One made-up history for all examples: a step from worse than unfused to better, a failure, one ratio that stays open.
_FACTORS = (1.08, 1.07, 1.08, 0.74, 0.75, None, 0.74, 0.77)
_DOUBT = 0.06
_OPEN = 7
_GROUPS = tuple(
    math.log(0.44) + step / 900 for step in (-9, 4, -2, 7, 0, 3, -5, 8, 1, -7, 2, -3, 6, -1, 5, -6, 9, -4, -8, 10)
)
_BEFORE = tuple(ratio + 0.045 for ratio in _GROUPS)


@dataclass(frozen=True)
class HelpView:
    """The words."""

    words: tuple[Word, ...]


@dataclass(frozen=True)
class Examples:
    """Drawings made by the functions that make the real ones."""

    sparkline: str
    chart: str
    strip: str
    badge: str


@router.get("/help.json")
async def help_json() -> Response:
    """The glossary as JSON."""
    return json_response(HelpView(glossary()))


@router.get("/help")
@router.get("/help.md")
async def help_page(request: Request, coming_from: ComingFrom) -> Response:
    """The page."""
    return page(
        request,
        "help.html",
        title="Help",
        view=HelpView(glossary()),
        examples=examples(),
        coming_from=coming_from,
        formats=("json", "md"),
    )


def examples() -> Examples:
    """One of each kind of chart."""
    ticks = [_tick(factor) for factor in _FACTORS]
    spots = tuple(
        None
        if factor is None
        else CurvePoint(place, factor, (factor * (1 - _DOUBT), factor * (1 + _DOUBT)), hollow=place == _OPEN)
        for place, factor in enumerate(_FACTORS)
    )
    axes = Axes(
        "time, variant ÷ unfused", "×", len(_FACTORS), "3f2a1bc", "9c04d1e", baseline=1.0, baseline_name="unfused"
    )
    now = Groups(_GROUPS, Ratio(low=math.log(0.437), high=math.log(0.443)))
    return Examples(
        sparkline=sparkline(ticks, tone="better", against_baseline=True),
        chart=still((Curve("fused", line_style_of("fused"), spots),), axes),
        strip=strip(now, Groups(_BEFORE), tone="better"),
        badge=badge("dense_bias_act native", "2.4× faster than unfused", "better"),
    )


def _tick(factor: float | None) -> Tick:
    if factor is None:
        return Tick(failed=True)
    middle = math.log(factor)
    return Tick(Ratio(middle, middle - _DOUBT, middle + _DOUBT))
