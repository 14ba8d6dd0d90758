"""What cannot be seen is shown, on the page and in what is written while somebody looks on."""

import re
from importlib.resources import files

import pytest

from pullback_dashboards.wording.controls import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nof two lines", "plain\ttext\nof two lines"),
        ("\x1b[31mred\x00\x7f", "␛[31mred␀␡"),
        ("50 %\r100 %\r\n", "50 %␍100 %␍\n"),
        ("passed\u202edeliaf\u2069 \x9b2J", "passed⟨U+202E⟩deliaf⟨U+2069⟩ ⟨U+009B⟩2J"),
        ("שלום, 你好, naïve ⟨x⟩ 🙂", "שלום, 你好, naïve ⟨x⟩ 🙂"),
    ],
)
def test_control_characters_have_pictures_and_letters_stay(text, shown):
    assert visible(text) == shown


def test_the_script_shows_the_same_characters():
    script = files("pullback_dashboards").joinpath("static/log.js").read_text()
    hidden = re.compile(re.search(r"const HIDDEN = /(.*)/g;", script)[1])
    every = [chr(code) for code in range(0x10000)]
    assert [character for character in every if hidden.search(character)] == [
        character for character in every if visible(character) != character
    ]
