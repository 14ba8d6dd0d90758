from pathlib import Path

from pullback_dashboards.wording.glossary import glossary

DOCUMENT = Path(__file__).parents[3] / "docs" / "glossary.md"


def test_the_words_are_those_of_the_document():
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    assert len(glossary()) == len(rows) - 1  # without the names of the columns
    words = {word for entry in glossary() for word in entry.words}
    assert {"workload", "board", "pin", "lease"} <= words
    assert "word" not in words


def test_code_in_a_meaning_is_told_apart():
    workload = next(entry for entry in glossary() if entry.words == ("workload",))
    assert workload.pieces[1] == "dense_bias_act"
    assert all("`" not in piece for entry in glossary() for piece in entry.pieces)
    assert all(len(entry.pieces) % 2 for entry in glossary())  # every code ends
