"""How often outcomes are right is counted soundly, and the load it is counted under ends with it."""

import json
import math

import psutil
import pytest
from benchmarks.outcomes import __main__ as outcomes
from benchmarks.outcomes.load import busy, kinds
from benchmarks.outcomes.session import CANDIDATES, SHARE, judge
from benchmarks.outcomes.table import MARKS, judged_early, table, wilson, with_table
from hypothesis import given
from hypothesis import strategies as st

from pullback_runners.measurement.comparison import REFERENCE, TWIN
from pullback_runners.measurement.lockstep import Group, Timing
from pullback_runners.suites import Suite
from pullback_runners.workloads import Case

SETTING = {"busy": 2, "cpus": 2, "suite": "standard", "seconds": 60.0, "code": "0123456"}


def session_of(**outcome_by_name):
    judged = {
        name: {
            "outcome": outcome_by_name.get(name, "same"),
            "log_ratio": 0.01,
            "groups": 20,
            "seconds": 42.0,
            "pairs": [0.02 + 1e-4 * math.cos(number) for number in range(14)] + [-1.0] * 6,
        }
        for name in CANDIDATES
    }
    twins = [1e-4 * math.sin(number) for number in range(20)]
    return SETTING | {"case": "counted_tape", "load_before": 3.0, "load_during": 5.0, "judged": judged, "twins": twins}


@given(st.integers(1, 500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_of_a_rate_holds_it_and_lies_between_none_and_all(counted):
    count, of = counted
    low, high = wilson(count, of)
    assert 0 <= low <= count / of + 1e-12
    assert count / of - 1e-12 <= high <= 1
    assert (1 - high, 1 - low) == pytest.approx(wilson(of - count, of))


def test_intervals_of_rates_are_wilson_s():
    assert wilson(0, 30) == pytest.approx((0.0, 0.1135), abs=1e-4)
    assert wilson(24, 30) == pytest.approx((0.6269, 0.9050), abs=1e-4)


def test_outcomes_are_counted_by_true_ratio():
    sessions = [session_of(**{"+1 %": "slower", "+2 %": "slower"}), session_of(**{"A/A": "faster", "+2 %": "slower"})]
    rows = [line.split(" | ") for line in table(sessions).splitlines() if line.startswith(("| A", "| +"))]
    assert [row[1:6] for row in rows] == [
        ["2", "0", "1", "1", "0"],
        ["2", "1", "0", "1", "0"],
        ["2", "2", "0", "0", "0"],
    ]
    assert [row[6].split(" (")[0] for row in rows] == ["called different 50 %", "found 50 %", "found 100 %"]


def test_what_fewer_groups_would_have_said_is_said_too():
    assert judged_early(session_of(), "+2 %") == "slower"
    assert "By the first 14 groups alone" in table([session_of()])


def test_the_table_says_under_which_load_it_was_made():
    said = table([session_of()])
    assert "Load averages 3.0 to 3.0 (median 3.0) before a session and 5.0 to 5.0 (median 5.0) during it" in said
    assert "on 2 CPUs, with 2 busy" in said


def test_the_table_replaces_what_is_between_the_marks():
    begin, end = MARKS
    assert with_table(f"above\n{begin}\nold\n{end}\nbelow\n", "new") == f"above\n{begin}\nnew\n{end}\nbelow\n"
    with pytest.raises(SystemExit, match="once each"):
        with_table("no marks", "new")


def test_of_two_busy_processes_one_computes_and_one_streams():
    assert kinds(0) == []
    assert kinds(2) == ["compute", "stream"]
    assert kinds(8).count("stream") == 2


def test_busy_processes_end_with_their_block_however_it_is_left():
    seen = []

    def interrupted():
        with busy(*kinds(2)) as ids:
            seen.extend((each, psutil.pid_exists(each)) for each in ids)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [existed for _, existed in seen] == [True, True]
    assert not any(psutil.pid_exists(each) for each, _ in seen)


def test_sessions_of_other_settings_are_not_counted_together(tmp_path):
    file = tmp_path / "sessions.jsonl"
    file.write_text("\n".join(json.dumps(session_of() | {"busy": number}) for number in (2, 4)))
    with pytest.raises(SystemExit, match="busy 4 cannot be counted with one with 2"):
        outcomes.earlier_sessions(file)
    with pytest.raises(SystemExit, match="code '0123456'"):
        outcomes.refuse_other_settings([session_of()], SETTING | {"code": "7654321"})


def groups_of(factor, count):
    """Groups whose candidates take `factor` times as long as reference and twin, which are nearly alike."""
    return [
        Group(
            {
                REFERENCE: timing(1e-3),
                TWIN: timing(1e-3 * (1 + 1e-4 * math.sin(number))),
                **{name: timing(1e-3 * factor * (1 + 1e-4 * math.cos(number))) for name in CANDIDATES},
            },
            {},
        )
        for number in range(count)
    ]


def timing(slice_s):
    return Timing(1, [slice_s] * 8, [slice_s] * 8, [0.0] * 8)


def test_a_candidate_is_judged_by_no_more_groups_than_its_own_session_would_have_had():
    case = Case("counted_tape", (("n", 4),), "f8")
    suite = Suite("standard", groups=20, most_groups=40, slices=8, may_say_same=True)
    clear = judge(case, "+2 %", groups_of(1.02, 33), suite)
    assert (clear["outcome"], clear["groups"]) == ("slower", 20)
    short = judge(case, "+2 %", groups_of(1.02, 13), suite)
    assert (short["outcome"], short["groups"], len(short["pairs"])) == ("slower", 13, 13)


def test_a_session_of_one_candidate_has_three_of_the_five_processes():
    assert pytest.approx(3 / 5) == SHARE
