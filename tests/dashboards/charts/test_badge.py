"""Badges: text of any kind, cut and counted."""

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from pullback_dashboards.charts.badge import badge

words = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=300)


def test_it_says_what_it_is_told():
    assert "dense native: 27× faster than unfused" in badge("dense native", "27× faster than unfused", "better")


@given(words, words, st.sampled_from(["better", "worse", "unsure", "plain", "failed", "?"]))
def test_any_text_is_a_document_of_bounded_width(left, right, tone):
    document = ET.fromstring(badge(left, right, tone))  # noqa: S314 - our own text
    assert 0 < int(document.get("width")) <= 2 * (12 + 60 * 10)
