"""Text of strangers is shown and does nothing."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pullback_service.notifications.plain_text import neutral, neutral_in_slack, one_line

BREAK = "\u200b"
NASTY = st.lists(
    st.sampled_from(
        [
            *("@channel", "<!here>", "<@U1>", "http://evil.example/x", "evil.com", "mailto:a@b.co", "[a](http://b.co)", "#help", "~town"),
            *("<http://b.co|Click>", "\r\nBcc: a@b.co", "\u2028", "\u202e", "\x00", "&amp;", "w[n=1.5]", "conv.py", " ", "x", "é", "👩\u200d💻"),
        ]
    )
).map("".join)  # fmt: skip


@given(NASTY | st.text())
@example("x" * 37 + "👩\u200d💻 and more")
def test_a_line_is_one_line_and_holds_nothing_unseen(text):
    line = one_line(text, 40)
    assert len(line.splitlines()) <= 1
    assert len(line) <= 40
    assert not re.search("[\x00-\x1f\x7f\u200b\u202a-\u202e\u2066-\u2069\ufeff]", line)
    assert one_line(line, 40) == line


@given(NASTY | st.text())
@example("see www.evil.example, or MAILTO:a@b.co")
def test_neutral_text_looks_the_same_and_has_no_mention_and_no_link(text):
    line = one_line(text, 10_000)
    made = neutral(line)
    assert made.replace(BREAK, "") == line
    assert not re.search(
        r"[@#~]\w|://|(mailto|tel):\S|\w\.[a-zA-Z]{2}|\]\(", re.sub(f":{BREAK}", " ", made), re.IGNORECASE
    )


@given(NASTY | st.text())
def test_slack_finds_no_markup_of_its_own_in_it(text):
    made = neutral_in_slack(one_line(text, 10_000))
    assert not re.search("[<>]", made)
    assert not re.search("&(?!amp;|lt;|gt;)", made)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\r\nb", "a b"),
        ("a" * 50, "a" * 39 + "…"),
        ("a\u200bb\u202ec", "a⟨U+200B⟩b⟨U+202E⟩c"),
        ("  a\t b ", "a b"),
        ("", ""),
    ],
)
def test_lines_are_made_like_this(text, said):
    assert one_line(text, 40) == said


def test_names_of_cases_and_numbers_stay_as_they_are():
    for text in ("native of dense_bias_act[n=100,act=tanh,f4,cpu] takes 4.1 % more time (3.6 to 4.7)", "a < b"):
        assert neutral(text) == text
