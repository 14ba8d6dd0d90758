"""Stills as PNG: for previews of links and for readers that show no SVG. Always on a light background, since the reader's theme is unknown.

Letters are drawn with Inter, which comes as a package: a server need not have a font. Names in scripts that Inter does not
have are drawn with the system's fonts, where there are any.
"""

import re
from functools import cache
from importlib.resources import as_file, files

import resvg_py

from pullback_dashboards.charts.static_chart import LIGHT

# Latin, Greek and Cyrillic with their marks; then punctuation, arrows, operators and shapes.
_KNOWN = re.compile("[\u0000-\u058f\u1e00-\u1fff\u2000-\u25ff]*")
_COLOUR = re.compile(r"var\((--[\w-]+)\)")
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_FONT = "Inter"


def png(svg: str, width: int) -> bytes:
    """A drawing of ours as PNG, so many pixels wide."""
    plain = _COLOUR.sub(lambda name: _tokens()[name[1]], _STYLE.sub("", svg)).replace("system-ui, sans-serif", _FONT)
    return resvg_py.svg_to_bytes(
        svg_string=plain,
        width=width,
        font_files=[_font_file()],
        font_family=_FONT,
        sans_serif_family=_FONT,
        skip_system_fonts=_KNOWN.fullmatch(plain) is not None,
    )


@cache
def _tokens() -> dict[str, str]:
    """The colours of the light theme by name; a file of its own has no style sheet to look them up in."""
    told = dict(part.split(":", 1) for part in LIGHT.split(";"))
    return {
        name: re.sub(r"rgb\((\d+) (\d+) (\d+)/([\d.]+)\)", r"rgba(\1,\2,\3,\4)", value) for name, value in told.items()
    }


@cache
def _font_file() -> str:
    (result,) = (each for each in files("fontpkg_inter").joinpath("files").iterdir() if each.name.startswith("Inter["))
    with as_file(result) as path:  # packages lie unpacked: nothing is taken away behind us
        return str(path)
