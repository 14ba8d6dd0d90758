"""Lines hold exactly what was measured."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.measured.code_identity import CodeIdentity
from pullback_service.ratio import Ratio
from pullback_service.readings import reading_text as readings
from pullback_service.readings.report_pooling import MeasuredPoint, pool
from pullback_service.reports.case_rows import PointPart
from pullback_service.reports.point_text import endings_of, lines
from pullback_service.reports.ratios import PairedRatio
from pullback_service.series.case_identity import SeriesPart

SERIES = SeriesPart(b"case", "fused", "tier", "time", "s", "smaller", exact=False)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def point(**changes):
    given = dict.fromkeys(("process_values", "calls", "method", "program_hash", "paired", "doubt"))
    return PointPart(series=SERIES, path="$", measured=CodeIdentity(), **{"value": 1.5, **given, **changes})


def ending_of(measured):
    return endings_of(measured)[0]


def test_what_is_missing_is_null():
    assert ending_of(point()) == b"\t".join([b"1.5"] + [b"\r"] * 11)


def test_a_ratio_and_its_interval():
    paired = PairedRatio("unfused", Ratio(-0.5, -1.0, 0.25, 7), "faster")
    ending = ending_of(point(process_values=[1.0, 2e-300], paired=paired, method="cpu", program_hash="ab"))
    assert ending == b"1.5\t{1.0,2e-300}\t\r\t\r\tunfused\t-0.5\t-1.0\t0.25\t7\tfaster\tcpu\tab"


def test_a_text_of_several_lines_is_one_field():
    ending = ending_of(point(method="a\tb\\N\r\nc"))
    assert ending.split(b"\t")[10] == b"a b\\N  c"


@given(value=FINITE, processes=st.lists(FINITE, min_size=1))
def test_numbers_read_back_to_the_same_bits(value, processes):
    fields = ending_of(point(value=value, process_values=processes)).split(b"\t")
    assert float(fields[0]).hex() == value.hex()
    assert [float(one).hex() for one in fields[1].strip(b"{}").split(b",")] == [one.hex() for one in processes]


def test_a_count_that_differs_from_call_to_call_has_its_least_and_its_most():
    ending, of_reading = endings_of(point(value=4.0, calls=(3.0, 6.0)))
    assert ending.split(b"\t")[:4] == [b"4.0", b"\r", b"3.0", b"6.0"]
    assert of_reading == readings.ending_of(pool([MeasuredPoint(4.0, process_low=3.0, process_high=6.0)]))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_every_point_is_one_line(count):
    report, at = UUID(int=5), datetime(2026, 1, 2, 3, 4, 5, 678900, UTC)
    measured = [None, 4, 4][:count]
    written = lines(range(count), measured, [b"x"] * count, commit=9, report=report, ordered_at=at, quality="clean")
    assert list(written) == [
        b"%d\t%b\t9\t00000000-0000-0000-0000-000000000005\t2026-01-02T03:04:05.678900+00:00\tclean\tx" % (id_, of)
        for id_, of in enumerate([b"\r", b"4", b"4"][:count])
    ]


def test_the_reading_of_a_point_alone_is_computed_beside_it():
    paired = PairedRatio("unfused", Ratio(-0.5, -1.0, 0.25, 7), "faster")
    measured = point(value=2.0, process_values=[1.0, 2.0, 3.0], paired=paired, method="cpu", program_hash="ab")
    alone = MeasuredPoint(2.0, [1.0, 2.0, 3.0], method="cpu", program_hash="ab", **paired._asdict())
    assert endings_of(measured)[1] == readings.ending_of(pool([alone]))
