"""Stored files: whatever was packed comes back, and what earlier versions packed can be read."""

import zlib

from hypothesis import example, given
from hypothesis import strategies as st

from pullback_service.reports.packing import packed, unpacked


@given(st.binary())
@example(b"")
@example(b"\x28\xb5\x2f\xfd")
@example(zlib.compress(b"a file that is packed itself"))
def test_what_was_packed_comes_back(file):
    assert unpacked(packed(file)) == file


@given(st.binary(), st.integers(0, 9))
def test_files_packed_by_zlib_are_read(file, level):
    assert unpacked(zlib.compress(file, level)) == file
