"""Squares: the newest commits of a series, oldest first, each in the tone of what changed there, as static SVG.

A page has a hundred of these. Squares of one tone are one path; those of commits at which nothing was measured are left out.
"""

from collections.abc import Sequence

SIDE, GAP = 5, 2
_TALL = ("failed", "worse", "likely-worse", "unsure")
"""Tones that stand higher than the others, so that none rests on its colour."""


def squares(tones: Sequence[str]) -> str:
    """The SVG element, styled by the page through the classes it carries. Empty where nothing was measured."""
    if not any(tones):
        return ""
    places: dict[str, list[int]] = {}
    for place, tone in enumerate(tones):
        if tone:
            places.setdefault(tone, []).append(place)
    width = len(tones) * (SIDE + GAP) - GAP
    drawn = "".join(f'<path class="sq-{tone}" d="{_path(tone, found)}"/>' for tone, found in places.items())
    return f'<svg class="squares" width="{width}" height="12" viewBox="0 0 {width} 12" aria-hidden="true" focusable="false">{drawn}</svg>'


def _path(tone: str, places: Sequence[int]) -> str:
    top, height = (0, 12) if tone in _TALL else (3, 6) if tone == "plain" else (3, 9)
    return "".join(f"M{place * (SIDE + GAP)} {top}h{SIDE}v{height}h-{SIDE}z" for place in places)
