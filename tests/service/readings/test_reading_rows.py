"""Rows hold exactly what was pooled."""

from datetime import UTC, datetime
from uuid import UUID

from pullback_service.ratio import Ratio
from pullback_service.readings.reading_rows import INSERT_READINGS, beginning_of, ending_of
from pullback_service.readings.report_pooling import MeasuredPoint, pool

AT = datetime(2026, 1, 2, 3, 4, 5, 678900, UTC)


def test_a_row_has_a_field_for_each_column():
    pooled = pool([MeasuredPoint(2.0, [1.0, 2.0, 3.0], baseline="unfused", ratio=Ratio(-0.5, n=3), outcome="faster")])
    beginning = beginning_of(9, AT, UUID(int=5), 2, quality="busy", dirty=True)
    told = dict(zip(INSERT_READINGS.types, (7, 4, *beginning, *ending_of(pooled)), strict=True))
    assert (told["series_id"], told["measured_id"], told["commit_id"], told["reports"]) == (7, 4, 9, 2)
    assert told["report_id"] == "00000000-0000-0000-0000-000000000005"
    assert datetime.fromisoformat(told["ordered_at"]) == AT
    assert (told["quality"], told["dirty"], told["consistent"]) == ("busy", True, False)
    spread = [told[name] for name in ("process_count", "process_low", "process_q25", "process_q75", "process_high")]
    assert spread == [3, 1.0, 1.5, 2.5, 3.0]
    assert (told["baseline"], told["log_ratio"], told["low"], told["n"]) == ("unfused", -0.5, None, 3)


def test_of_a_count_there_is_no_spread():
    ending = ending_of(pool([MeasuredPoint(4096.0, method="nep49")]))
    assert ending == (4096.0, *[None] * 11, True, "nep49", None)
