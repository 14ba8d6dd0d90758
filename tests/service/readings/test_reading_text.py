"""Lines hold exactly what was pooled."""

from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pullback_service.ratio import Ratio
from pullback_service.readings.reading_text import INSERT_READINGS, beginning_of, ending_of, line
from pullback_service.readings.report_pooling import MeasuredPoint, pool

FINITE = st.floats(allow_nan=False, allow_infinity=False)
AT = datetime(2026, 1, 2, 3, 4, 5, 678900, UTC)


def test_a_line_has_a_field_for_each_column():
    pooled = pool([MeasuredPoint(2.0, [1.0, 2.0, 3.0], baseline="unfused", ratio=Ratio(-0.5, n=3), outcome="faster")])
    beginning = beginning_of(9, AT, UUID(int=5), 2, quality="busy", dirty=True)
    fields = line(7, 4, beginning, ending_of(pooled)).split(b"\t")
    columns = INSERT_READINGS[INSERT_READINGS.index("(") + 1 : INSERT_READINGS.index(")")].split(", ")
    told = dict(zip(columns, fields, strict=True))
    assert (told["series_id"], told["measured_id"], told["commit_id"], told["reports"]) == (b"7", b"4", b"9", b"2")
    assert told["report_id"] == b"00000000-0000-0000-0000-000000000005"
    assert (told["quality"], told["dirty"], told["consistent"]) == (b"busy", b"t", b"f")
    spread = [told[name] for name in ("process_count", "process_low", "process_q25", "process_q75", "process_high")]
    assert spread == [b"3", b"1.0", b"1.5", b"2.5", b"3.0"]
    assert (told["baseline"], told["log_ratio"], told["low"], told["n"]) == (b"unfused", b"-0.5", b"\r", b"3")


def test_of_a_count_there_is_no_spread():
    ending = ending_of(pool([MeasuredPoint(4096.0, method="nep49")]))
    assert ending == b"\t".join([b"4096.0", *[b"\r"] * 11, b"t", b"nep49", b"\r"])


@given(FINITE)
def test_numbers_read_back_to_the_same_bits(value):
    assert float(ending_of(pool([MeasuredPoint(value)])).split(b"\t")[0]).hex() == value.hex()
