"""Strangers' text in Markdown."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from pullback_dashboards.wording.markdown import code, neutral

TEXTS = st.text(st.sampled_from("ab`| \n@#\\"), min_size=1).filter(str.strip)


@given(TEXTS, st.booleans())
@example("`", True)
@example("\\|", True)
@example("a``b`", False)
def test_code_is_one_line_between_fences_that_are_nowhere_in_it(text, in_cell):
    shown = code(text, in_cell=in_cell)
    fence = re.match("`+", shown)[0]
    inside = shown[len(fence) : -len(fence)]
    assert shown.endswith(fence)
    assert fence not in re.findall("`+", inside)
    assert not inside.startswith("`")
    assert not inside.endswith("`")
    assert "\n" not in shown
    assert not in_cell or not re.search(r"(?<!\\)(\\\\)*\|", shown)
    assert _signs(inside.replace("\\|", "|") if in_cell else inside) == _signs(text)


def _signs(text):
    return "".join(text.split())


def test_plain_text_mentions_nobody_refers_to_nothing_and_links_nowhere():
    shown = neutral("@all see #12, https://a.example and www.a.example | *b* <i>")
    assert not re.search(r"@\w|#\d|://|www\.", shown)
    assert "\\|" in shown
    assert "\\*b\\*" in shown
    assert neutral("5 % of a @ b # c: d") == "5 % of a @ b \\# c: d"
