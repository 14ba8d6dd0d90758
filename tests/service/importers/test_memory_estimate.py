import sys

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback_service.errors import TooLargeError
from pullback_service.importers import memory_estimate
from pullback_service.importers.limits import LONGEST_STRING_BYTES
from pullback_service.importers.memory_estimate import refuse_heavy, refuse_heavy_case, refuse_long_strings, weight_of
from pullback_service.importers.unpacking import refuse_too_many_values
from pullback_service.reports.case_bytes import take_apart
from pullback_service.reports.case_frames import packed_apart

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text("abc", max_size=9),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abcdef", max_size=6), inner),
    max_leaves=30,
)


def size_of(value):
    """Bytes of a value with all that it holds."""
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(size_of(key) + size_of(each) for key, each in value.items())
    return size + (sum(map(size_of, value)) if isinstance(value, list) else 0)


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_what_a_value_takes_is_estimated_within_a_third(value):
    many = orjson.dumps([value] * 50)
    assert size_of(orjson.loads(many)) < 1.35 * weight_of(many) + 1000


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "make",  # not made where tests are collected
    [
        lambda: b'{"a":[' + b",".join([b'"abcdefg"'] * 3_000_000) + b"]}",
        lambda: b"{" + b",".join(b'"k%d":1' % n for n in range(1_500_000)) + b"}",
        lambda: b"[" + b",".join([b'{"a":1.5,"b":2,"c":"x"}'] * 500_000) + b"]",
    ],
    ids=["strings", "members", "objects"],
)
def test_what_would_take_too_much_memory_is_refused_before_it_is_made(make):
    body = make()
    with pytest.raises(TooLargeError, match="HEAVIEST_BYTES"):
        refuse_heavy(body)
    refuse_heavy(memoryview(body)[: len(body) // 4])


def test_a_body_of_numbers_is_as_heavy_as_its_numbers():
    refuse_heavy(b"[" + b",".join([b"1.2345678901234567"] * 3_000_000) + b"]")


class Watched(bytes):
    """A body that notes how much of it is counted, or cut out, at once."""

    most = 0

    def count(self, sign, begin=0, end=None):
        end = len(self) if end is None else min(end, len(self))
        Watched.most = max(Watched.most, end - begin)
        return super().count(sign, begin, end)

    def __getitem__(self, place):
        found = super().__getitem__(place)
        Watched.most = max(Watched.most, len(found)) if isinstance(found, bytes) else Watched.most
        return found


@pytest.mark.parametrize(
    "look", [weight_of, refuse_too_many_values, take_apart, packed_apart], ids=lambda look: look.__name__
)
def test_no_more_than_a_block_is_looked_through_at_once(look):
    """Other threads, the event loop among them, wait for as long as that takes."""
    body = Watched(b'{"a": [' + b",".join([b"1.2345678"] * 400_000) + b'], "b": "x"}')
    Watched.most = 0
    look(body)
    assert 0 < Watched.most <= memory_estimate.BLOCK_BYTES


def test_a_case_is_lighter_than_a_body():
    """Its values are validated at once."""
    numbers = b"[" + b",".join([b"1.5"] * 1_000_000) + b"]"
    refuse_heavy(numbers)
    with pytest.raises(TooLargeError, match="HEAVIEST_CASE_BYTES"):
        refuse_heavy_case(memoryview(numbers))
    refuse_heavy_case(numbers[: len(numbers) // 2])


LONG = b"x" * (LONGEST_STRING_BYTES + 1)


@pytest.mark.parametrize("before", [0, 1, memory_estimate._LIGHT_BYTES - 7, memory_estimate._LIGHT_BYTES])
@pytest.mark.parametrize(
    "text",
    [LONG, LONG[:-4] + "😀".encode(), LONG.replace(b"x" * 1000, b"x" * 998 + b'\\"')],
    ids=["ascii", "emoji", "quotes"],
)
def test_a_string_that_is_too_long_is_refused_wherever_it_stands(before, text):
    body = b'{"a":"' + b"y" * before + b'","b":"' + text + b'","c":1}'
    with pytest.raises(TooLargeError, match="LONGEST_STRING_BYTES"):
        refuse_long_strings(body)
    with pytest.raises(TooLargeError, match="LONGEST_STRING_BYTES"):
        refuse_long_strings(body[: body.index(b'","c"')])  # one that does not end


def test_long_lists_of_numbers_and_strings_within_the_limit_are_none():
    numbers = b",".join([b"-1.25e-7", b"null", b"true"] * 300_000)
    refuse_long_strings(b'{"a": [' + numbers + b'], "b": "' + LONG[:-1] + b'", "c": [' + numbers + b"]}")
