"""Answers of hostile processes: refused in a few words, in little memory."""

import os
import threading
import tracemalloc
from contextlib import suppress

import pytest

from pullback_runners.measurement.answer_forms import any_object
from pullback_runners.measurement.answers import Answers, NoAnswerError, answer_of

MIB = 1 << 20


@pytest.mark.parametrize(
    ("piece", "times", "said"),
    [
        (b"x" * MIB, 100, "a line of more than 4 MiB"),
        (b"[" * MIB, 10, "a line of more than 4 MiB"),
        (b'{"a": [' + b"{}," * 1_000_000 + b"{}]}\n", 1, "an answer of more than 200000 values"),
        (b"[" * 150_000 + b"\n", 1, "a line that is no JSON"),
        (b"\xff\n", 1, "a line that is no JSON"),
        (b"[]\n", 1, "a line that is no JSON object"),
    ],
)
def test_what_is_no_answer_is_refused_in_little_memory(piece, times, said):
    answers, written = os.pipe()

    def write():
        with suppress(BrokenPipeError), os.fdopen(written, "wb", buffering=0) as pipe:
            for _ in range(times):
                sent = 0
                while sent < len(piece):
                    sent += pipe.write(memoryview(piece)[sent:])

    writing = threading.Thread(target=write)
    writing.start()
    tracemalloc.start()
    with pytest.raises(NoAnswerError, match=f"^{said}$"):
        received(answers)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    os.close(answers)
    writing.join()
    assert most < 24 * MIB


def received(descriptor):
    answers = Answers(descriptor)
    while not answers.has_line:
        assert answers.receive()
    return answers.take(any_object)


def test_answers_are_taken_one_by_one():
    reading, writing = os.pipe()
    os.write(writing, b'{"a": 1}\n{"b": [2]}\n{"c"')
    os.close(writing)
    answers = Answers(reading)
    assert answers.receive()
    assert [answers.take(any_object), answers.take(any_object)] == [{"a": 1}, {"b": [2]}]
    assert (answers.has_line, answers.receive()) == (False, False)
    os.close(reading)


def test_after_what_is_no_answer_nothing_is_left_to_take():
    reading, writing = os.pipe()
    os.write(writing, b'[]\n{"a": 1}\n')
    answers = Answers(reading)
    assert answers.receive()
    with pytest.raises(NoAnswerError):
        answers.take(any_object)
    assert not answers.has_line
    os.close(reading)
    os.close(writing)


def test_an_answer_as_long_as_a_plan_is_taken():
    assert answer_of(b'{"plan": "' + b"x" * MIB + b'"}')["plan"] == "x" * MIB
