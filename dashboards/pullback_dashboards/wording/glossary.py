"""The words of Pullback, one per thing, as the help page prints them: read out of docs/glossary.md, which is their one home.

The file is part of the distribution; in a checkout it lies where people read it.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

_SHIPPED = "_glossary.md"
_ROW = re.compile(r"^\| (?P<words>.+?) \| (?P<meaning>.+?) \|$")


@dataclass(frozen=True)
class Word:
    """Words that are explained together, and what they mean. In the meaning every second piece is code."""

    words: tuple[str, ...]
    meaning: str

    @property
    def pieces(self) -> tuple[str, ...]:
        """The meaning as text, code, text, code and so on."""
        return tuple(self.meaning.split("`"))


@cache
def glossary() -> tuple[Word, ...]:
    """All words, in the order of the document."""
    return tuple(_words(_document()))


def _words(text: str) -> list[Word]:
    rows = (_ROW.match(line) for line in text.splitlines())
    cells = [(row["words"], row["meaning"]) for row in rows if row]
    # The first row of the table names its columns, the second is a rule, which the pattern takes for a row too.
    return [Word(tuple(words.split(", ")), meaning) for words, meaning in cells if words not in {"word", "---"}]


def _document() -> str:
    shipped = files("pullback_dashboards").joinpath(_SHIPPED)
    if shipped.is_file():
        return shipped.read_text(encoding="utf-8")
    return (Path(__file__).parents[3] / "docs" / "glossary.md").read_text(encoding="utf-8")
