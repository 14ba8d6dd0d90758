"""The cause of an incident by the movements of series, and the state that it leads to."""

from math import inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.incidents.causes import Movement, Shift, cause_of, may_be_machine, shift_of
from pullback_service.incidents.changes import Change
from pullback_service.incidents.grouping import LocatedChange
from pullback_service.incidents.lifecycle import state_of

SLOWER = log(1.2)
PLACES = {number: number for number in range(100)}


def movement(case, *, own=0.0, error=0.005, machine=1, variant="fused", ratio=None, workload=None, **parts):
    """The movement of a case's series; every case has a workload of its own."""
    return Movement(
        series_id=1000 * machine + 10 * case + ["fused", "native", "unfused"].index(variant),
        case_id=case,
        machine_id=machine,
        workload=workload or f"workload {case}",
        variant=variant,
        metric="time",
        baseline=None if ratio is None else "unfused",
        own=Shift(own, error),
        ratio=None if ratio is None else Shift(ratio, 0.001),
        **parts,
    )


def change(moved, *, evidence="levels", standing="borne_out"):
    """The change that the detector found of a movement."""
    return Change(
        case_id=moved.case_id,
        machine_id=moved.machine_id,
        series_id=moved.series_id,
        variant=moved.variant,
        kind="step",
        worse=True,
        evidence=evidence,
        standing=standing,
        reference_id=10,
        commit_id=11,
        log_ratio=abs(moved.best.size),
    )


def cases(count, **parts):
    return [movement(case, **parts) for case in range(1, count + 1)]


def found(*movements):
    """The changes of what moved, on any machine."""
    return [change(each) for each in movements if each.best.size > 0.05]


@pytest.mark.parametrize("count", [4, 6, 40])
def test_unrelated_cases_that_moved_alike_are_the_machine(count):
    slow = cases(count, own=SLOWER)
    assert cause_of(found(*slow), slow) == "machine"


def test_what_the_detector_found_in_some_is_the_machine_where_all_moved():
    slow = cases(40, own=SLOWER)
    assert cause_of(found(*slow[:2]), slow) == "machine"


@given(st.integers(4, 30), st.integers(0, 30))
def test_more_than_a_tenth_that_stood_still_is_a_commit(moved, still):
    every = [*cases(moved, own=SLOWER), *(movement(100 + case) for case in range(still))]
    cause = cause_of(found(*every), every)
    assert (cause == "machine") == (still <= (moved + still) / 10)


def test_three_workloads_may_share_something_else():
    slow = cases(3, own=SLOWER)
    assert cause_of(found(*slow), slow) is None
    sizes = [each._replace(workload="lstm") for each in cases(20, own=SLOWER)]
    assert cause_of(found(*sizes), sizes) is None


def test_factors_that_differ_are_a_commits():
    slow = [movement(case, own=log(1 + case / 20)) for case in range(1, 21)]
    assert cause_of(found(*slow), slow) is None


def test_variants_that_stood_still_are_the_codes_doing():
    every = [*cases(10, own=SLOWER), *cases(10, variant="native"), *cases(10, variant="unfused")]
    assert cause_of(found(*every), every) == "tier"


def test_ratios_that_stood_still_are_the_machines_doing():
    """With a baseline only its values are suspected; the values of all others moved as well."""
    every = [*cases(10, own=SLOWER, variant="unfused"), *cases(10, own=SLOWER, ratio=0.0)]
    changes = [change(each) for each in every if each.variant == "unfused"]
    assert cause_of(changes, every) == "machine"


@pytest.mark.parametrize(
    ("there", "cause"),
    [
        ({"own": SLOWER}, None),
        ({"own": 0.0}, "machine"),
        ({"own": SLOWER, "error": 0.2}, "machine"),  # too noisy to tell
        ({"own": -SLOWER}, "machine"),
    ],
)
def test_another_machine_that_moved_alike_clears_it(there, cause):
    slow, other = cases(10, own=SLOWER), cases(10, machine=2, **there)
    assert cause_of(found(*slow), [*slow, *other]) == cause
    assert cause_of(found(*slow, *other), [*slow, *other]) == cause


@pytest.mark.parametrize(
    ("moved", "others", "cause"),
    [
        ({"own": SLOWER}, {}, None),
        ({"own": 2 * SLOWER}, {}, None),
        ({"own": SLOWER, "error": 0.1}, {}, "machine"),  # too noisy to tell
        ({"own": SLOWER, "is_same_program": True}, {}, "machine"),
        ({"own": 3 * SLOWER}, {"own": SLOWER}, None),  # the other machine moved too
        ({"own": 3 * SLOWER}, {"own": SLOWER, "error": 0.2}, "machine"),  # nothing is known of its other cases
    ],
)
def test_a_few_cases_that_moved_on_a_machine_that_stood_still_accuse_the_commit(moved, others, cause):
    slow = cases(6, own=SLOWER)
    there = [movement(case, machine=2, **(moved if case < 3 else others)) for case in range(1, 7)]
    assert cause_of([*found(*slow), *map(change, there[:2])], [*slow, *there]) == cause


def test_ratios_that_moved_are_not_the_machines_doing_even_if_all_values_did():
    every = [*cases(10, own=SLOWER, ratio=SLOWER), *cases(10, variant="unfused", error=1.0)]
    assert cause_of(found(*every), every) is None


@pytest.mark.parametrize("evidence", ["paired", "exact"])
def test_a_count_or_a_pair_tells_of_the_code(evidence):
    slow = cases(10, own=SLOWER)
    changes = [change(slow[0], evidence=evidence, standing="claimed"), *found(*slow[1:])]
    assert cause_of(changes, slow) is None


def test_the_same_program_in_two_workloads_is_the_machine_whatever_stood_still():
    slow = [*cases(2, own=SLOWER, is_same_program=True), movement(3, own=SLOWER)]
    still = [movement(10 + case) for case in range(20)]
    assert cause_of(found(*slow), [*slow, *still]) == "machine"
    assert cause_of(found(*slow[1:]), [*slow[1:], *still]) is None  # one alone


@given(st.lists(st.floats(0.2, 5), max_size=12), st.randoms())
def test_series_that_cannot_tell_and_the_order_of_all_decide_nothing(noisy, chance):
    slow = cases(8, own=SLOWER)
    loud = [movement(100 + case, own=error / 2, error=error) for case, error in enumerate(noisy)]
    every, changes = [*slow, *loud], found(*slow)
    chance.shuffle(every)
    chance.shuffle(changes)
    assert cause_of(changes, every) == "machine"


def test_ratios_that_moved_together_and_their_baseline_the_other_way_are_the_baseline():
    ratios = [*cases(2, ratio=-SLOWER), *cases(2, ratio=-SLOWER, variant="native")]
    own = cases(2, own=SLOWER, variant="unfused")
    assert cause_of(found(*own), [*own, *ratios]) == "baseline"
    moved = [*own, *ratios[1:], movement(1, ratio=0.0)]
    assert cause_of(found(*own), moved) is None
    assert cause_of(found(*own), [*cases(2, variant="unfused"), *ratios]) is None


@pytest.mark.parametrize(("workloads", "cause"), [(2, None), (3, "tier"), (5, "tier")])
def test_one_variant_across_workloads_is_its_tier(workloads, cause):
    moved = cases(workloads, own=SLOWER, ratio=SLOWER)
    every = [*moved, *cases(workloads, ratio=0.0, variant="native"), *cases(workloads, variant="unfused")]
    assert cause_of(found(*moved), every) == cause
    counted = [change(each, evidence="exact", standing="claimed") for each in moved]
    assert cause_of(counted, every) == cause


def test_a_tier_needs_others_that_stood_still():
    moved = cases(5, own=SLOWER, ratio=SLOWER)
    assert cause_of(found(*moved), moved[:3]) is None
    with_it = cases(5, own=SLOWER, ratio=SLOWER, variant="native")
    assert cause_of(found(*moved), [*moved, *with_it, *cases(5, variant="unfused")]) is None
    loud = cases(5, own=0.0, error=1.0, variant="native")
    assert cause_of(found(*moved), [*moved, *loud]) is None


def test_what_is_refuted_or_of_no_series_has_no_cause():
    slow = cases(10, own=SLOWER)
    assert cause_of([change(each, standing="refuted") for each in slow], slow) is None
    assert cause_of([change(each, evidence="anchor") for each in slow], slow) is None
    assert cause_of([], slow) is None


def test_the_machine_is_asked_about_where_unrelated_workloads_changed_next_to_each_other():
    slow = cases(4, own=SLOWER)
    known = [
        LocatedChange(change(each)._replace(commit_id=11 + number), each.workload) for number, each in enumerate(slow)
    ]
    assert may_be_machine([known[0].change], known, PLACES)
    assert not may_be_machine([known[0].change], known[1:], PLACES)
    far = known[3].change._replace(commit_id=80)
    assert not may_be_machine([known[0].change], [*known[:3], LocatedChange(far, "workload 4")], PLACES)


VALUES = st.lists(st.floats(0.5, 2), min_size=1, max_size=20)


@given(VALUES, st.floats(0.1, 10), st.sampled_from([1, -1]))
def test_a_factor_of_all_values_is_the_size_of_the_movement(values, factor, worse):
    shift = shift_of(values, [factor * value for value in values], scatter=0.1, worse=worse)
    assert shift.size == pytest.approx(worse * log(factor), abs=1e-9)
    assert shift.error >= 0
    again = shift_of([7 * value for value in values], [7 * factor * value for value in values], scatter=0.1)
    assert again.error == pytest.approx(shift.error, abs=1e-9)


def test_counts_have_no_scatter_and_may_be_zero():
    assert shift_of([3, 3, 3, 3, 4], [6], scatter=0.0) == (log(2), 0)
    assert shift_of([0], [0], scatter=0.0) == (0, 0)
    assert shift_of([0], [2], scatter=0.0) == (inf, 0)
    assert shift_of([], [2], scatter=0.0) is None


@pytest.mark.parametrize(
    ("standing", "parts", "state"),
    [
        ("borne_out", {}, "unconfirmed"),
        ("suspected", {}, "suspected"),
        ("claimed", {}, "confirmed"),
        ("borne_out", {"may_be_measured": True}, "suspected"),
        ("borne_out", {"is_measured_again": True}, "confirming"),
    ],
)
def test_what_may_be_the_machine_is_never_likely_and_may_be_measured(standing, parts, state):
    (moved,) = cases(1, own=SLOWER)
    assert state_of([change(moved, standing=standing)], may_be_machine=True, **parts) == state
