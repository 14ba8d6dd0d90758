"""Progress of a run, for a terminal, or for an agent that passes it on with its heartbeat."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

_MOST_STEPS: Final = 2**31
_LONGEST_WORDS: Final = 10_000


@dataclass(frozen=True)
class Progress:
    """The progress of a run, in steps of about equal cost (an examination or a group is one step)."""

    phase: str
    """`build`, `preflight`, `examine`, `measure` or `finished` (of one case)."""
    done: int
    total: int
    """May grow: an ambiguous case of the standard suite asks for more groups."""
    message: str
    """One line for people: the case and what is done with it."""
    case: str | None = None

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        """Progress as a process wrote it on a line; ValueError if it is none."""
        try:
            content = json.loads(line)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        if not isinstance(content, dict) or set(content) != {"phase", "done", "total", "message", "case"}:
            raise ValueError("not the members of progress")
        steps, words = (
            (content["done"], content["total"]),
            (content["phase"], content["message"], content["case"] or ""),
        )
        if not all(type(each) is int and 0 <= each < _MOST_STEPS for each in steps):
            raise ValueError("steps that are not counted")
        if not all(isinstance(each, str) and len(each) <= _LONGEST_WORDS for each in words):
            raise ValueError("no words of progress")
        return cls(**content)


def ignore_progress(_: Progress) -> None:
    """Watch nothing."""


class Steps:
    """Counts the steps of a run and passes them on."""

    def __init__(self, total: int, tell: Callable[[Progress], None]) -> None:
        self.done = 0
        self.total = total
        self._tell = tell

    def say(self, phase: str, message: str, case: str) -> None:
        """Say what is done now."""
        self._tell(Progress(phase, self.done, self.total, message, case))


class GroupSteps:
    """The groups of one case as steps; there may be more of them than the suite wants at first, or fewer."""

    def __init__(self, steps: Steps, expected: int, name: str, case: str) -> None:
        self._steps, self._expected, self._name, self._case = steps, expected, name, case
        self._done = 0

    def begin(self, group: int, most: int) -> None:
        """A group begins."""
        self._steps.total += most - self._expected
        self._expected = most
        self._steps.say("measure", f"{self._name}: group {group} of {most}", self._case)
        self._steps.done += 1
        self._done += 1

    def end(self) -> None:
        """End the groups: those skipped after a failure or for want of time count as done."""
        self._steps.done += self._expected - self._done
        self._steps.say("finished", f"{self._name}: finished", self._case)
