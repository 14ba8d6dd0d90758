"""What differs between two reports."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from pullback_dashboards.case.differences import Difference, Line, differing_facts, program_lines

programs = st.lists(st.sampled_from(["a", "b", "c", "b1", "b2", "v1 = b2"]), max_size=30)


def test_only_facts_that_differ_are_told():
    before = {"cpu": "A", "numpy": "2.3", "driver": None, "gone_now": [1, 2]}
    now = {"cpu": "A", "numpy": "2.4", "driver": None, "new_now": 5}
    assert differing_facts(before, now) == (
        Difference("numpy", "2.3", "2.4"),
        Difference("new now", "", "5"),
        Difference("gone now", "1, 2", ""),
    )


def rows(before, now):
    """As a page says it."""
    found = [row for fact in differing_facts(before, now) for row in fact.rows]
    return [(after.label, was.shown, after.shown) for was, after in found]


def test_differences_read_as_facts_do():
    before = {"free_disk_bytes": 2**31, "smt": True, "l3": {"size_kib": 512, "ways": 8}, "gone_mhz": 5}
    now = {"free_disk_bytes": 2**30, "smt": False, "l3": {"size_kib": 1024, "ways": 8}}
    thin = "\N{NARROW NO-BREAK SPACE}"
    assert rows(before, now) == [
        ("free disk", f"2{thin}GiB", f"1{thin}GiB"),
        ("SMT", "yes", "no"),
        ("L3 size", f"512{thin}KiB", f"1{thin}MiB"),
        ("gone", f"5.00{thin}MHz", ""),
    ]
    assert rows({"l3": 5}, {"l3": {"ways": 8}}) == [("L3 ways", "", "8"), ("L3", "5", "")]


def test_values_that_rounding_makes_one_are_told_apart():
    assert rows({"free_disk_bytes": 69723832320}, {"free_disk_bytes": 69723832321}) == [
        ("free disk", "69723832320", "69723832321")
    ]


def test_the_json_of_a_difference_is_what_was_told():
    (found,) = differing_facts({"free_disk_bytes": 5}, {"free_disk_bytes": 6})
    assert orjson.loads(orjson.dumps(found)) == {"name": "free disk bytes", "before": "5", "now": "6"}


def test_the_same_program_has_no_differing_lines():
    assert program_lines(["a", "b"], ["a", "b"]) == ()


def test_a_line_more_is_shown_among_its_neighbours():
    before = [f"step {number}" for number in range(20)]
    now = [*before[:10], "copy", *before[10:]]
    assert program_lines(before, now) == (
        Line("skip", "7 equal lines"),
        *(Line("same", f"step {number}") for number in (7, 8, 9)),
        Line("new", "copy"),
        *(Line("same", f"step {number}") for number in (10, 11, 12)),
        Line("skip", "7 equal lines"),
    )


def test_a_step_more_does_not_make_new_lines_of_those_it_renumbers():
    before = ["b0 = matmul(in0, in1)", "tanh(b0, out=b0)", "b1 = sum(b0)", "return b1"]
    now = ["b0 = copy(in0)", "b1 = matmul(b0, in1)", "tanh(b1, out=b1)", "b2 = sum(b1)", "return b2"]
    assert program_lines(before, now) == (
        Line("gone", "b0 = matmul(in0, in1)"),
        Line("new", "b0 = copy(in0)"),
        Line("new", "b1 = matmul(b0, in1)"),
        *(Line("same", text) for text in now[2:]),
    )


def test_numbers_are_told_where_nothing_else_differs():
    assert program_lines(["b1 = sum(b0)"], ["b2 = sum(b0)"]) == (
        Line("gone", "b1 = sum(b0)"),
        Line("new", "b2 = sum(b0)"),
    )


@given(programs, programs)
def test_every_line_of_both_programs_is_shown_or_counted(before, now):
    lines = program_lines(before, now)
    if before == now:
        assert lines == ()
        return
    skipped = sum(int(line.text.split()[0]) for line in lines if line.kind == "skip")
    count = {kind: sum(line.kind == kind for line in lines) for kind in ("same", "new", "gone")}
    assert {(line.kind, line.sign) for line in lines} <= {("same", " "), ("new", "+"), ("gone", "−"), ("skip", "⋯")}
    assert skipped + count["same"] + count["new"] == len(now)
    assert skipped + count["same"] + count["gone"] == len(before)
