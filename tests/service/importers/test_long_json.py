"""Long JSON read in pieces: the same value, the same refusals, and never much at once."""

import json
from contextlib import nullcontext
from unittest import mock

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pullback_service.errors import UnreadableBodyError
from pullback_service.importers import long_json
from pullback_service.importers.contents import read_json
from pullback_service.importers.long_json import let_go, read
from pullback_service.reports.parsing import parse_json

TEXTS = st.text(alphabet='{}[]"\\,: é', max_size=6) | st.sampled_from(["", "a", "b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=25,
)
PIECES = st.sampled_from([1, 2, 3, 7, 20])


@settings(max_examples=400, deadline=None)
@given(VALUES, st.sampled_from([None, 1]), st.booleans(), PIECES)
def test_pieces_make_the_whole(value, indent, escaped, piece):
    text = json.dumps(value, indent=indent, ensure_ascii=escaped).encode()
    with mock.patch.object(long_json, "PIECE_BYTES", piece):
        found = read(text)
    assert json.dumps(found) == json.dumps(orjson.loads(text))  # members in the same order


@settings(max_examples=600, deadline=None)
@given(st.text(alphabet='{}[]"\\,:1 a\n', max_size=24), PIECES)
@example('{"a":1,"b":2,"a":[3,4],"a":{"b":5,"c":6}}', 1)
@example('{"a":[1,2],"b":3,"a":[4,5,6]}', 3)
@example("[1, ]", 1)
@example('{"a":1, }', 1)
@example("[1,2}", 1)
@example("1,2", 1)
@example("[1,2]],3", 1)
def test_what_is_no_json_is_none_in_pieces(text, piece):
    body = text.encode()
    try:
        whole = orjson.loads(body)
    except orjson.JSONDecodeError:
        with mock.patch.object(long_json, "PIECE_BYTES", piece), pytest.raises(orjson.JSONDecodeError):
            read(body)
        return
    with mock.patch.object(long_json, "PIECE_BYTES", piece):
        assert json.dumps(read(body)) == json.dumps(whole)


def test_what_is_too_deep_is_cut_no_more():
    """A place in a stack for each of a million brackets, at each of a hundred cuts, would be 800 MB."""
    for depth, is_read in ((1000, True), (5000, False)):
        text = b"[" * depth + b",".join([b"1.5"] * 100_000) + b"]" * depth
        assert max((len(cut.stack) for cut in long_json._cuts(text)), default=0) == (depth if is_read else 0)
        with nullcontext() if is_read else pytest.raises(orjson.JSONDecodeError):
            read(text)


def test_a_name_is_looked_for_once():
    text = b'{"a":{"b":[' + b",".join([b"1.5"] * 200_000) + b"]}}"
    with mock.patch.object(long_json, "_name_before", side_effect=long_json._name_before) as looked:
        assert read(text) == orjson.loads(text)
    assert looked.call_count == 2


def test_an_error_is_told_with_its_place_in_the_whole():
    text = b"[" + b"\n".join([b'"\xc3\xa9", 1.25,'] * 100_000) + b"\n  2, oops]"
    with pytest.raises(orjson.JSONDecodeError) as whole:
        orjson.loads(text)
    with pytest.raises(orjson.JSONDecodeError) as pieces:
        read(text)
    assert (pieces.value.lineno, pieces.value.colno) == (whole.value.lineno, whole.value.colno) == (100_001, 6)


@pytest.mark.parametrize(
    ("reader", "last"), [(read_json, "1"), (read_json, "NaN"), (parse_json, "1"), (parse_json, "oops")]
)
@pytest.mark.parametrize(("begin", "end"), [('{"benchmarks":[', "]}"), ('{"a":{"b":[{"c":[', "]}]}}")])
def test_no_reader_gets_much_at_once(reader, last, begin, end, monkeypatch):
    """Whoever reads JSON in C keeps the event loop waiting until it is read."""
    most = 0

    def watched(loads):
        def watching(text, **options):
            nonlocal most
            most = max(most, len(text))
            return loads(text, **options)

        return watching

    monkeypatch.setattr(orjson, "loads", watched(orjson.loads))
    monkeypatch.setattr(json, "loads", watched(json.loads))
    body = (begin + ",".join(["1.2345678"] * 300_000) + "," + last + end).encode()
    with pytest.raises(UnreadableBodyError) if last == "oops" else nullcontext():
        reader(body)
    assert 0 < most < 2 * long_json.PIECE_BYTES


def test_what_is_let_go_of_is_emptied_some_at_a_time():
    numbers, named = [1.5] * 100_000, dict.fromkeys(map(str, range(50_000)), 1)
    let_go({"a": [{"b": numbers}], "c": named})
    assert len(numbers) <= long_json.MANY
    assert len(named) <= long_json.MANY


def test_a_name_with_a_quote_behind_thousands_of_backslashes_is_read():
    value = {"\\" * 2050 + '"x': [{"n": number} for number in range(20_000)]}
    assert read(orjson.dumps(value)) == value
