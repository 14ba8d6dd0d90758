"""Charts as PNG, and the card that stands beside a link."""

import zlib
from xml.etree import ElementTree as ET

from pullback_dashboards.charts.card import HEIGHT, WIDTH, card
from pullback_dashboards.charts.palette import line_style_of
from pullback_dashboards.charts.raster import png
from pullback_dashboards.charts.static_chart import Axes, Curve, CurvePoint, standalone

AXES = Axes("time, variant ÷ unfused", "×", 2, "aaaaaaa", "ddddddd", baseline=1.0, baseline_name="unfused")
CURVE = Curve(
    "fused", line_style_of("fused"), (CurvePoint(0, 0.5, (0.4, 0.6)), CurvePoint(1, 0.4, (0.3, 0.5), hollow=True))
)


def pixels(body):
    """Whatever is in the image besides its header, as bytes: two images that look alike have the same."""
    data, at = b"", 8
    while at < len(body):
        length, kind = int.from_bytes(body[at : at + 4]), body[at + 4 : at + 8]
        data += body[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return zlib.decompress(data)


def test_a_chart_is_drawn_with_its_colours_and_its_letters():
    drawn = pixels(png(standalone([CURVE], AXES), 860))
    assert drawn != pixels(png(standalone([CURVE], Axes("", "×", 2, "aaaaaaa", "ddddddd")), 860))  # the title is ink
    svg = standalone([CURVE], AXES)
    assert pixels(png(svg, 860)) != pixels(png(svg.replace("var(--series-1)", "var(--series-3)"), 860))


def test_letters_need_no_font_of_the_system(monkeypatch):
    asked = {}
    monkeypatch.setattr("resvg_py.svg_to_bytes", lambda **told: asked.update(told) or b"")
    png(standalone([CURVE], AXES), 860)
    assert asked["skip_system_fonts"]
    assert asked["font_files"][0].endswith(".ttf")
    assert "var(" not in asked["svg_string"]
    png(standalone([CURVE], Axes("שלום", "×", 1, "", "")), 860)
    assert not asked["skip_system_fonts"]


def test_a_card_keeps_what_people_wrote_and_fits_its_words():
    widths = []

    def chart(width):
        widths.append(width)
        return standalone([CURVE], AXES, width)

    drawn = card("<b>&", "word " * 200, chart, of="a/b")
    document = ET.fromstring(drawn)  # noqa: S314 - our own text
    told = [text.text for text in document.findall("{http://www.w3.org/2000/svg}text")]
    assert told[:2] == ["Pullback · a/b", "<b>&"]
    assert len(told) == 5
    assert told[-1].endswith("…")
    assert document.get("viewBox") == f"0 0 {WIDTH} {HEIGHT}"
    card("a", "", chart, of="b")
    assert widths[0] > widths[1]  # fewer words leave a taller room
