"""Choices on a page: each option is a link to the same page in another state."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """One possible answer."""

    text: str
    href: str
    current: bool


@dataclass(frozen=True)
class Question:
    """One thing the address decides."""

    label: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class EmptyPage:
    """A page without content: why, and what to do next."""

    title: str
    lines: tuple[str, ...]
    command: str | None = None


FIRST_REPORT = "The first report creates one. In a clone of your repository:"
FIRST_STEPS = """pullback init
git add pullback.toml bench && git commit -m "Measure gradients"
pullback run -o report.json
pullback upload report.json --server {base}"""
"""The commands of a page that waits for the first results; `pullback run` alone would measure the workloads that Pullback brings."""


def questions(*items: Question) -> tuple[Question, ...]:
    """The questions that have more than one answer."""
    return tuple(question for question in items if len(question.options) > 1)


def question(label: str, options: Iterable[tuple[str, str, bool]]) -> Question:
    """A question out of (text, address, is it so now)."""
    return Question(label, tuple(Option(*option) for option in options))
