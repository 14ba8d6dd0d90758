"""Badges: one sentence about one variant as a small SVG, for a README.

The width is counted from the text and forced on it with `textLength`, for nobody knows the reader's fonts.
"""

from pullback_dashboards.charts.escaping import escape, shortened

HEIGHT = 20
_TONES = {"better": "#0b4f8a", "worse": "#93390a", "failed": "#8a1c3b", "unsure": "#616872", "plain": "#454c54"}
_NARROW, _WIDE = frozenset("iljtfr.,:;|!()[] '"), frozenset("mwMW@%×")
_MOST = 60  # characters a side


def badge(left: str, right: str, tone: str) -> str:
    """The SVG document: what is spoken of, then what is said of it on the tone's ground."""
    left, right = shortened(left, _MOST), shortened(right, _MOST)
    label, message = _width(left), _width(right)
    width = label + message
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" role="img" '
        f'aria-label="{escape(f"{left}: {right}")}"><title>{escape(f"{left}: {right}")}</title>'
        f'<clipPath id="r"><rect width="{width}" height="{HEIGHT}" rx="3"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{label}" height="{HEIGHT}" fill="#3a4048"/>'
        f'<rect x="{label}" width="{message}" height="{HEIGHT}" fill="{_TONES.get(tone, _TONES["plain"])}"/></g>'
        f'<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">'
        f'<text x="6" y="14" textLength="{label - 12}">{escape(left)}</text>'
        f'<text x="{label + 6}" y="14" textLength="{message - 12}">{escape(right)}</text></g></svg>'
    )


def _width(text: str) -> int:
    return 12 + round(sum(4 if c in _NARROW else 10 if c in _WIDE else 7 for c in text))
