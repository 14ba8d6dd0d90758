import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_dashboards.wording import units


def plain(text):
    return text.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.2411e-06, "s", "1.24 µs"),
        (9.996e-04, "s", "1.00 ms"),
        (0.0123, "s", "12.3 ms"),
        (75.0, "s", "75.0 s"),
        (3e-10, "s", "0.300 ns"),
        (0.0, "s", "0 s"),
        (0.0, "B", "0 B"),
        (800.0, "B", "800 B"),
        (1024.0, "B", "1 KiB"),
        (1298432.0, "B", "1.24 MiB"),
        (5 * 2.0**30, "B", "5 GiB"),
        (3.0, "count", "3"),
        (12480.0, "count", "12 480"),
        (22.0, "1", "22"),
        (9.5, "1", "9.50"),
        (7.1e9, "FLOP", "7.10 GFLOP"),
        (None, "s", "–"),
        (float("nan"), "B", "–"),
    ],
)
def test_a_quantity_is_scaled_to_its_unit(value, unit, text):
    assert plain(units.quantity(value, unit)) == text


@given(st.floats(min_value=1e-9, max_value=1e5))
def test_scaling_never_changes_a_time_by_more_than_its_rounding(seconds):
    number, unit = units.quantity(seconds, "s").split("\u202f")[-2:]
    digits = units.quantity(seconds, "s").rsplit("\u202f", 1)[0].replace("\u202f", "")
    size = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert number
    assert float(digits) * size == pytest.approx(seconds, rel=6e-3)


@pytest.mark.parametrize(
    ("values", "unit", "text"),
    [
        ((0.998e-3, 1.0121e-3, 1.2e-3), "s", "1.00 ms, 1.01 ms, 1.20 ms"),
        ((998e-6, 1.002e-3), "s", "0.998 ms, 1.002 ms"),
        ((1.0, 1.5, 2.0), "s", "1.00 s, 1.50 s, 2.00 s"),
        ((1024, 2048), "B", "1 KiB, 2 KiB"),
        ((1024, 1536), "B", "1.00 KiB, 1.50 KiB"),
        ((12000, 13500), "count", "12 000, 13 500"),
        ((0.0, 0.0), "s", "0 s, 0 s"),
    ],
)
def test_quantities_beside_each_other_have_one_unit_and_one_number_of_decimals(values, unit, text):
    assert ", ".join(map(plain, units.quantities(values, unit))) == text


def test_a_difference_always_has_its_sign():
    assert plain(units.change(1024.0, "B")) == "+1 KiB"
    assert plain(units.change(-1024.0, "B")) == "−1 KiB"
    assert plain(units.change(1, "count")) == "+1"


def test_one_scale_serves_a_whole_axis():
    assert units.scale_for([2e-6, 3e-3], "s") == units.Scale(1e-3, "ms")
    assert units.scale_for([], "B") == units.Scale(1.0, "B")
    assert units.scale_for([3, 4], "count") == units.Scale(1.0, "")


def test_the_exact_value_keeps_every_byte():
    assert plain(units.exact(1298432.0, "B")) == "1 298 432 B"
