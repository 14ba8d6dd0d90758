"""Answers of processes that run code of a commit: a JSON object on a line, with bounds before it becomes objects.

Such a process can write anything to the pipe or file of its answers, and who reads them must neither fail nor take its memory.
"""

import json
import os
from typing import Any

from pullback_runners.measurement.answer_forms import Form, any_object

MOST_BYTES = 4 << 20
"""Most bytes of an answer; nearly all of the longest ones are a plan."""
MOST_VALUES = 200_000
"""Most values of an answer, of which each may take 100 bytes."""


class NoAnswerError(Exception):
    """A line that is no answer, in a few words."""


class Answers:
    """The answers from a pipe, in order."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unread = b""

    @property
    def has_line(self) -> bool:
        """True if the next answer can be taken without receiving more."""
        return b"\n" in self._unread

    def receive(self) -> bool:
        """Receive what is in the pipe, or wait for it; False at its end. NoAnswerError if no line ends within the bound."""
        received = os.read(self._descriptor, 1 << 16)
        self._unread += received
        if len(self._unread) > MOST_BYTES and not self.has_line:
            self._unread = b""
            raise _too_long()
        return bool(received)

    def take(self, form: Form) -> dict[str, Any]:
        """Take the next answer, whose line is there; NoAnswerError if it is none of this form, and then nothing is left to take."""
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            return answer_of(line, form)
        except NoAnswerError:
            self._unread = b""
            raise


def answer_of(line: bytes, form: Form = any_object) -> dict[str, Any]:
    """The answer on a line; NoAnswerError if it is none of this form, or a larger one than is read."""
    if len(line) > MOST_BYTES:
        raise _too_long()
    if sum(map(line.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise NoAnswerError(f"an answer of more than {MOST_VALUES} values")
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NoAnswerError("a line that is no JSON") from error
    if not isinstance(answer, dict):
        raise NoAnswerError("a line that is no JSON object")
    if not form(answer):
        raise NoAnswerError("a JSON object of another form")
    return answer


def _too_long() -> NoAnswerError:
    return NoAnswerError(f"a line of more than {MOST_BYTES >> 20} MiB")
