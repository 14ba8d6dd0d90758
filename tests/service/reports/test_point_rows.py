"""Rows hold exactly what was measured."""

from array import array
from datetime import UTC, datetime
from uuid import UUID

import pytest

from pullback_service.measured_code.code_identity import CodeIdentity
from pullback_service.ratio import Ratio
from pullback_service.readings import reading_rows as readings
from pullback_service.readings.report_pooling import MeasuredPoint, pool
from pullback_service.reports.case_rows import PointPart
from pullback_service.reports.point_rows import COLUMNS, endings_of, rows
from pullback_service.reports.ratios import PairedRatio
from pullback_service.series.case_identity import SeriesPart

SERIES = SeriesPart(b"case", "fused", "tier", "time", "s", "smaller", exact=False)


def point(**changes):
    given = dict.fromkeys(("process_values", "calls", "method", "program_hash", "paired", "doubt"))
    return PointPart(series=SERIES, path="$", measured=CodeIdentity(), **{"value": 1.5, **given, **changes})


def ending_of(measured):
    return endings_of(measured)[0]


def test_what_is_missing_is_null():
    assert ending_of(point()) == (1.5, *[None] * 11)


def test_a_ratio_and_its_interval():
    paired = PairedRatio("unfused", Ratio(-0.5, -1.0, 0.25, 7), "faster")
    ending = ending_of(point(process_values=[1.0, 2e-300], paired=paired, method="cpu", program_hash="ab"))
    processes = array("d", [1.0, 2e-300]).tobytes()
    assert ending == (1.5, processes, None, None, "unfused", -0.5, -1.0, 0.25, 7, "faster", "cpu", "ab")


def test_a_count_that_differs_from_call_to_call_has_its_least_and_its_most():
    ending, of_reading = endings_of(point(value=4.0, calls=(3.0, 6.0)))
    assert ending[:4] == (4.0, None, 3.0, 6.0)
    assert of_reading == readings.ending_of(pool([MeasuredPoint(4.0, process_low=3.0, process_high=6.0)]))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_every_point_is_one_row(count):
    report, at = UUID(int=5), datetime(2026, 1, 2, 3, 4, 5, 678900, UTC)
    measured = [None, 4, 4][:count]
    endings = [ending_of(point(value=float(each))) for each in range(count)]
    written = [*rows(range(count), measured, endings, commit=9, report=report, ordered_at=at, quality="clean")]
    its = 9, "00000000-0000-0000-0000-000000000005", "2026-01-02T03:04:05.678900+00:00", "clean"
    assert written == [(id_, measured[id_], *its, *endings[id_]) for id_ in range(count)]
    assert all(len(row) == len(COLUMNS) for row in written)


def test_the_reading_of_a_point_alone_is_computed_beside_it():
    paired = PairedRatio("unfused", Ratio(-0.5, -1.0, 0.25, 7), "faster")
    measured = point(value=2.0, process_values=[1.0, 2.0, 3.0], paired=paired, method="cpu", program_hash="ab")
    alone = MeasuredPoint(2.0, [1.0, 2.0, 3.0], method="cpu", program_hash="ab", **paired._asdict())
    assert endings_of(measured)[1] == readings.ending_of(pool([alone]))
