import pytest

from pullback_dashboards.wording.plurals import counted, noun


@pytest.mark.parametrize(
    ("count", "words", "text"),
    [
        (1, ("case",), "1 case"),
        (0, ("case",), "0 cases"),
        (2, ("case",), "2 cases"),
        (1, ("agent is", "agents are"), "1 agent is"),
        (3, ("agent is", "agents are"), "3 agents are"),
    ],
)
def test_things_are_counted_with_their_word(count, words, text):
    assert counted(count, *words) == text
    assert text.endswith(noun(count, *words))
