"""Counts of instructions are read from a file that what is measured can write as well."""

import pytest

from pullback_runners.measurement.instructions import CALLS, read_instructions


@pytest.mark.parametrize(
    ("written", "counted"),
    [
        (b"events: Ir\ntotals: 12340\n", 12340 / CALLS),
        (b"totals: 0\n", None),
        (b"\xff\ntotals: 10\n", None),
        (b"totals: " + b"9" * 5000 + b"\n", None),
    ],
)
def test_what_is_no_count_counts_nothing(tmp_path, written, counted):
    (tmp_path / "1.out").write_bytes(written)
    assert read_instructions(tmp_path / "1.out") == counted
