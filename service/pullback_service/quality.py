"""The quality of a report: clean, or busy where something else was at work on the machine."""

from typing import Final

CLEAN: Final = "clean"
BUSY: Final = "busy"


def quality_of(word: str) -> str:
    """The quality by the word of a report or of a stored row; `contaminated` is what earlier releases wrote for busy."""
    return CLEAN if word == CLEAN else BUSY
