"""Forms of answers: what workers write has them, and nothing that its readers would stumble over."""

import math

import pytest

from pullback_runners.allocations.warm_calls import LAYERS, AllocationCounts
from pullback_runners.measurement.answer_forms import is_beside, is_examined, is_failure, is_turn, is_warm

COUNTS = AllocationCounts(dict.fromkeys(LAYERS)).document()
EXAMINED = {
    "gradient": {"ok": True, "max_rel_error": 1e-12, "oracle": "closed form", "complaint": None},
    "counts": COUNTS | {"array_bytes": {"unit": "B", "value": 800, "method": "NEP 49", "range": [800, 900]}},
    "plan": {"peak_bytes": 800},
    "refuted": ["unfused", "it is off"],
}
TURN = {"cpu_ns": 10, "wall_ns": 11, "waited_ns": None, "late_ns": 0}
FAILURE = {"failed": {"kind": "gradient", "message": "it is off", "refuted": None}}


def with_count(**changes):
    return EXAMINED | {"counts": COUNTS | {"array_bytes": EXAMINED["counts"]["array_bytes"] | changes}}


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        (is_examined, EXAMINED),
        (is_examined, EXAMINED | {"plan": None, "libraries": {"torch": "2.9"}, "device_memory": {"held": 5}}),
        (is_turn, TURN),
        (is_warm, {"filling": 0.5, "timer_ns": 90}),
        (is_beside, {"beside": {"device_time": None, "host_time": 1e-3}}),
        (is_failure, FAILURE),
        (is_failure, {"failed": {"kind": "exception", "message": ""}}),
    ],
)
def test_answers_have_their_form(form, answer):
    assert form(answer)


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        *((is_examined, {name: each for name, each in EXAMINED.items() if name != left_out}) for left_out in ("gradient", "counts", "plan")),
        (is_examined, EXAMINED | {"gradient": EXAMINED["gradient"] | {"max_rel_error": None}}),
        (is_examined, EXAMINED | {"counts": {}}),
        (is_examined, EXAMINED | {"plan": {"peak_bytes": "800"}}),
        (is_examined, EXAMINED | {"refuted": ["unfused"]}),
        (is_examined, EXAMINED | {"libraries": ["torch"]}),
        (is_examined, with_count(value=-1)),
        (is_examined, with_count(range=[800])),
        (is_turn, TURN | {"cpu_ns": 1 << 2000}),
        (is_turn, TURN | {"wall_ns": math.nan}),
        (is_turn, {"cpu_ns": 10, "wall_ns": 11, "waited_ns": None}),
        (is_warm, {"filling": math.inf, "timer_ns": 90}),
        (is_beside, {"beside": {"host_time": "1"}}),
        (is_failure, {"failed": 1}),
        (is_failure, {"failed": {"kind": ["gradient"], "message": ""}}),
        (is_failure, {"failed": {"kind": "odd", "message": ""}}),
        (is_failure, {"failed": {"kind": "gradient", "message": "", "refuted": 1}}),
    ],
)  # fmt: skip
def test_others_have_not(form, answer):
    assert not form(answer)
