"""Invisible characters are shown as marks in all forms that people read; programs get them as they were sent."""

import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_cli.checking.verdict_formats import line
from pullback_dashboards.charts.escaping import escape
from pullback_dashboards.wording.markdown import code, markdown_text, neutral
from pullback_service.notifications.plain_text import one_line
from pullback_service.visible_text import visible

STACKED = "a" + "\u0301" * 40
MARKED = {
    "\u202e": "⟨U+202E⟩",
    "\u200b": "⟨U+200B⟩",
    "\u2066": "⟨U+2066⟩",
    "\ufeff": "⟨U+FEFF⟩",
    "\U000e0041": "⟨U+E0041⟩",
    STACKED: STACKED[:5] + "⟨+36 marks⟩",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nof two lines", "plain\ttext\nof two lines"),
        ("\x1b[31mred\x00\x7f", "␛[31mred␀␡"),
        ("50 %\r100 %\r\n", "50 %␍100 %␍\n"),
        ("passed\u202edeliaf\u2069 \x9b2J", "passed⟨U+202E⟩deliaf⟨U+2069⟩ ⟨U+009B⟩2J"),
        ("שלום, 你好, naïve ⟨x⟩ 🙂 👩\u200d💻 ❤\ufe0f \u0645\u06cc\u200c\u062e 5\u00a0%", "שלום, 你好, naïve ⟨x⟩ 🙂 👩\u200d💻 ❤\ufe0f \u0645\u06cc\u200c\u062e 5\u00a0%"),
        ("a\u200db\ufe0f", "a⟨U+200D⟩b⟨U+FE0F⟩"),
        *MARKED.items(),
    ],
)  # fmt: skip
def test_what_is_not_seen_has_a_mark_and_letters_stay(text, shown):
    assert visible(text) == shown


@given(st.text())
def test_what_was_shown_is_shown_the_same_again(text):
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize("form", [escape, markdown_text, code, neutral, line, lambda text: one_line(text, 500)])
@pytest.mark.parametrize(("hidden", "mark"), MARKED.items())
def test_every_form_that_people_read_shows_the_mark(form, hidden, mark):
    assert mark in form(f"x{hidden}y").replace("\\", "")
    if hidden != STACKED:
        assert hidden not in form(f"x{hidden}y")


def test_the_script_shows_the_same_characters():
    """But those that belong to emoji, or keep letters from joining: of these it would have to know what stands beside them."""
    script = files("pullback_dashboards").joinpath("static/log.js").read_text()
    hidden = re.compile(re.search(r"const HIDDEN = /(.*)/gu;", script)[1])
    every = [chr(number) for number in range(0x10000) if number not in {0x200C, 0x200D, *range(0xFE00, 0xFE10)}]
    assert [character for character in every if hidden.search(character)] == [
        character for character in every if visible(character) != character
    ]
