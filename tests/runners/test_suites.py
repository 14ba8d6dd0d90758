import re
from pathlib import Path

import pytest

from pullback_runners.errors import UsageError
from pullback_runners.suites import SUITES, find_suite
from pullback_runners.workloads import known_workloads
from pullback_runners.workloads.selection import select_cases

MEASUREMENT = Path(__file__).parents[2] / "docs" / "measurement.md"


def test_the_page_says_how_much_measuring_a_suite_is():
    told = re.findall(r"^\| `(\w+)` \| (\d+)\b[^|]*\| (\d+) \| (yes|no) \|$", MEASUREMENT.read_text(), re.MULTILINE)
    assert {(name, int(groups), int(slices), same == "yes") for name, groups, slices, same in told} == {
        (suite.name, suite.groups, suite.slices, suite.may_say_same)
        for suite in SUITES.values()
        if suite.name != "full"  # as standard, on more sizes
    }


def test_a_trial_measures_what_a_quick_run_does():
    assert select_cases("trial") == select_cases("quick")
    assert all(workload.cases("trial") == workload.cases("quick") for workload in known_workloads())


def test_a_suite_that_is_none_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="no suite 'hasty'; known: quick, standard, full, trial"):
        find_suite("hasty")


def test_an_effort_of_two_is_twice_as_many_groups_in_twice_the_time():
    usual = find_suite("standard")
    longer = usual.with_effort(2)
    assert (longer.groups, longer.most_groups, longer.slices) == (2 * usual.groups, 2 * usual.most_groups, usual.slices)
    assert longer.comparisons_s(8) == 2 * usual.comparisons_s(8)
    assert usual.with_effort(1) == usual
