import io
import json

import pytest

from pullback_runners.gradbench import converse


def answers_to(*lines, respond=lambda message: {"id": message["id"]}):
    out = io.BytesIO()
    converse(io.BytesIO(b"".join(line.encode() + b"\n" for line in lines)), out, respond)
    return [json.loads(line, parse_constant=pytest.fail) for line in out.getvalue().splitlines()]


def test_a_line_is_answered_by_a_line_with_the_same_id():
    asked = [json.dumps({"id": number, "kind": "start"}) for number in (0, 1, 7)]
    assert answers_to(*asked) == [{"id": 0}, {"id": 1}, {"id": 7}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("no JSON", "not JSON"),
        ('{"id": 3', "not JSON"),
        ('{"id": 3, "kind": "evaluate", "input": NaN}', "NaN is no JSON"),
        ("[1, 2]", "an id and a kind"),
        ("[" * 200_000, "not JSON"),
        ('{"kind": "start"}', "an id and a kind"),
    ],
)
def test_what_is_no_message_is_answered_with_a_sentence_and_the_next_line_as_ever(line, reason):
    refused, answered = answers_to(line, '{"id": 4, "kind": "start"}')
    assert refused["success"] is False
    assert reason in refused["error"]
    assert answered == {"id": 4}


def test_empty_lines_are_passed_by():
    assert answers_to("", " ", '{"id": 0, "kind": "start"}') == [{"id": 0}]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_lacks_are_a_failure_that_says_so(number):
    (answer,) = answers_to(
        '{"id": 5, "kind": "evaluate"}', respond=lambda _: {"id": 5, "success": True, "output": [1.0, number]}
    )
    assert answer["id"] == 5
    assert answer["success"] is False
    assert "NaN or infinity" in answer["error"]


def test_it_ends_when_nobody_reads_the_answers():
    class Closed(io.BytesIO):
        def write(self, _):
            raise BrokenPipeError

    converse(io.BytesIO(b'{"id": 0, "kind": "start"}\n' * 3), Closed(), lambda message: {"id": message["id"]})


def test_a_pipe_that_takes_a_part_at_a_time_gets_the_whole_line():
    class Narrow(io.BytesIO):
        def write(self, data):
            return super().write(bytes(data)[:7])

    out = Narrow()
    converse(
        io.BytesIO(b'{"id": 0, "kind": "start"}\n'), out, lambda message: {"id": message["id"], "output": "x" * 50}
    )
    assert json.loads(out.getvalue())["output"] == "x" * 50
    assert out.getvalue().endswith(b"\n")
