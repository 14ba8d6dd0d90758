"""One style per variant: colour, marker and line, so that lines can be distinguished without colours.

Colours are names of the style sheet's custom properties; the page resolves them for the theme it is in. The hues are
Okabe and Ito's, adjusted to a contrast of 3 against either ground.
"""

from dataclasses import dataclass

from pullback_service.uploaded_claims import BASELINE

_KNOWN = ("fused", "stateful", "native", "numpy", "autograd", "jax", "torch", "torch-compile")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "star", "hexagon")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")


@dataclass(frozen=True)
class LineStyle:
    """The appearance of one variant in every chart."""

    slot: int
    symbol: str
    dash: str

    @property
    def colour(self) -> str:
        """The line's colour, as a custom property."""
        return f"var(--series-{self.slot})"

    @property
    def band(self) -> str:
        """The interval's colour: the same hue, mostly transparent."""
        return f"var(--band-{self.slot})"


def line_style_of(variant: str, strangers: tuple[str, ...] = ()) -> LineStyle:
    """The look of a variant; unknown ones take the slots in the order of `strangers`."""
    if variant == BASELINE:
        return LineStyle(0, "circle-open", "dot")
    if variant in _KNOWN:
        place = _KNOWN.index(variant)
    else:
        place = strangers.index(variant) if variant in strangers else sum(map(ord, variant))
        place %= len(_KNOWN)
    return LineStyle(place + 1, _SYMBOLS[place], _DASHES[place])
