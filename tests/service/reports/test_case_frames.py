"""Cases of a large report packed apart: the whole comes back, and each case alone."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.reports.case_frames import (
    OUTLINE_TAIL_BYTES,
    OUTLINED,
    TAIL_BYTES,
    identity_of,
    index_of,
    outline_in,
    packed_apart,
    read_parts,
)
from pullback_service.reports.codecs import packed, unpacked
from pullback_service.reports.report_outline import outline

SLICES = [[round(1e-4 + 1e-9 * place, 12) for place in range(600)] for _ in range(4)]


def case(n, **more):
    return {
        "case": {"workload": "w", "params": {"n": n}, "dtype": "f4", "device": "cpu"},
        "variants": [{"variant": "unfused", "metrics": {"time": {"slices": SLICES}}}],
        **more,
    }


def report(cases):
    return orjson.dumps({"format": "pullback-report", "cases": cases, "comparisons": [{"note": "], [{"}]})


def part(stored, wanted):
    index = index_of(stored[-TAIL_BYTES:])
    return read_parts([stored[at : at + size] for at, size in index.parts(identity_of(wanted["case"]))])


@given(st.integers(3, 8), st.sampled_from([b"", b" ", b"\n  "]), st.text(max_size=20))
def test_a_large_report_comes_back_whole_and_case_by_case(count, blank, note):
    cases = [case(n, note=note) for n in range(count)]
    body = report(cases).replace(b',{"case"', b"," + blank + b'{"case"')
    stored = packed_apart(body)
    assert unpacked(stored) == body
    for each in cases:
        head, entry = part(stored, each)
        assert entry == each
        assert head == {**orjson.loads(body), "cases": []}
    assert [*index_of(stored[-TAIL_BYTES:]).cases] == [each["case"] for each in cases]


def test_of_two_entries_of_one_case_the_first_counts_as_where_all_is_read():
    first, second = case(1, note="first"), case(1, note="second")
    assert part(packed_apart(report([first, second, case(2)])), first)[1] == first


def test_an_index_does_not_know_a_case_that_is_not_there():
    stored = packed_apart(report([case(n) for n in range(3)]))
    assert index_of(stored[-TAIL_BYTES:]).parts(identity_of(case(9)["case"])) == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        report([case(1)])[:-1] * 3,
        orjson.dumps({"cases": [{"case": {}, "slices": SLICES * 3}]}),
        orjson.dumps({"cases": [{"case": {"workload": "w", "params": {"n": n}}} for n in range(5000)]}),
        orjson.dumps({"pullback": orjson.loads(report([case(n) for n in range(3)]))}),
        orjson.dumps(SLICES * 10),
        report([case(1), case(2, more=[1.25] * 600_000)]),  # it would be read whole for the outline
    ],
)
def test_what_cannot_be_cut_is_packed_as_one(body):
    assert packed_apart(body) == packed(body)
    assert unpacked(packed_apart(body)) == body


def test_the_outline_stands_at_the_end_of_a_large_report():
    body = report([case(n) for n in range(3)])
    stored = packed_apart(body)
    assert stored.endswith(OUTLINED)
    assert outline_in(stored) == outline_in(stored[-OUTLINE_TAIL_BYTES:]) == outline(body)
    assert outline_in(packed(body)) is None
    assert outline_in(None) is None


def test_an_outline_too_large_for_the_end_is_left_out(monkeypatch):
    body = report([case(n) for n in range(3)])
    monkeypatch.setattr("pullback_service.reports.case_frames.OUTLINE_TAIL_BYTES", 500)
    stored = packed_apart(body)
    assert outline_in(stored) is None
    assert unpacked(stored) == body
    assert part(stored, case(1))[1] == case(1)


def test_a_damaged_outline_is_a_value_error():
    stored = packed_apart(report([case(n) for n in range(3)]))
    begin = stored.rindex(b"\x28\xb5\x2f\xfd")
    with pytest.raises(ValueError, match="not as it was stored"):
        outline_in(stored[: begin + 9] + bytes([stored[begin + 9] ^ 255]) + stored[begin + 10 :])


def test_a_damaged_index_is_none():
    stored = packed_apart(report([case(n) for n in range(3)]))
    for tail in (None, b"", stored[-5:], stored[-40:], stored[-TAIL_BYTES:-12] + b"!!!!" + stored[-8:]):
        assert index_of(tail) is None
    assert index_of(stored[-TAIL_BYTES:]) is not None


def test_a_damaged_part_is_a_value_error():
    stored = packed_apart(report([case(n) for n in range(3)]))
    index = index_of(stored[-TAIL_BYTES:])
    parts = [stored[at : at + size] for at, size in index.parts(identity_of(case(1)["case"]))]
    parts[2] = parts[2][:-9] + bytes([parts[2][-9] ^ 255]) + parts[2][-8:]
    with pytest.raises(ValueError, match="not as it was stored"):
        read_parts(parts)
