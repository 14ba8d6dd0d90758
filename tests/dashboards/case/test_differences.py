"""What differs between two reports."""

from hypothesis import given
from hypothesis import strategies as st

from pullback_dashboards.case.differences import Difference, Line, differing_facts, program_lines

programs = st.lists(st.sampled_from("abcdef"), max_size=30)


def test_only_facts_that_differ_are_told():
    before = {"cpu": "A", "numpy": "2.3", "driver": None, "gone_now": [1, 2]}
    now = {"cpu": "A", "numpy": "2.4", "driver": None, "new_now": 5}
    assert differing_facts(before, now) == (
        Difference("numpy", "2.3", "2.4"),
        Difference("new now", "", "5"),
        Difference("gone now", "1, 2", ""),
    )


def test_the_same_program_has_no_differing_lines():
    assert program_lines(["a", "b"], ["a", "b"]) == ()


def test_a_line_more_is_shown_among_its_neighbours():
    before = [f"step {number}" for number in range(20)]
    now = [*before[:10], "copy", *before[10:]]
    assert program_lines(before, now) == (
        Line("skip", "7 lines the same"),
        *(Line("same", f"step {number}") for number in (7, 8, 9)),
        Line("new", "copy"),
        *(Line("same", f"step {number}") for number in (10, 11, 12)),
        Line("skip", "7 lines the same"),
    )


@given(programs, programs)
def test_every_line_of_both_programs_is_shown_or_counted(before, now):
    lines = program_lines(before, now)
    if before == now:
        assert lines == ()
        return
    skipped = sum(int(line.text.split()[0]) for line in lines if line.kind == "skip")
    count = {kind: sum(line.kind == kind for line in lines) for kind in ("same", "new", "gone")}
    assert skipped + count["same"] + count["new"] == len(now)
    assert skipped + count["same"] + count["gone"] == len(before)
