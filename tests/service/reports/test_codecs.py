"""Stored files: whatever was packed comes back, and what earlier versions packed can be read."""

import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pullback_service.reports.codecs import packed, unpacked


@given(st.binary())
@example(b"")
@example(b"\x28\xb5\x2f\xfd")
@example(zlib.compress(b"a file that is packed itself"))
def test_what_was_packed_comes_back(file):
    assert unpacked(packed(file)) == file


@given(st.binary(), st.integers(0, 9))
def test_files_packed_by_zlib_are_read(file, level):
    assert unpacked(zlib.compress(file, level)) == file


@given(st.binary(min_size=1), st.data())
def test_a_bit_that_was_turned_around_is_found(file, data):
    """What the frame says of itself (RFC 8878, 3.1.1.1) is not under its checksum, and has bits that mean nothing."""
    stored = bytearray(packed(file))
    head = 5 + 8
    place = data.draw(st.integers(min(head, len(stored) - 4), len(stored) - 1))
    stored[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match="not as it was stored"):
        unpacked(bytes(stored))


@pytest.mark.parametrize("stored", [b"", b"{}", packed(b"a file" * 99)[:-5], zlib.compress(b"a file" * 99)[:-5]])
def test_what_was_never_packed_or_was_cut_is_refused(stored):
    with pytest.raises(ValueError, match="not as it was stored"):
        unpacked(stored)
