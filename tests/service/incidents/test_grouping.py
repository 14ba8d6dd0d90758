"""Which changes are one incident."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.incidents.changes import Change
from pullback_service.incidents.grouping import LocatedChange, group, successors

PLACES = {commit: commit for commit in range(20)}


def change(reference, commit, *, workload="lstm", variant="fused", series=1, worse=True, kind="step", machine=1):
    made = Change(
        case_id=series,
        machine_id=machine,
        series_id=series,
        variant=variant,
        kind=kind,
        worse=worse,
        evidence="exact",
        standing="claimed",
        reference_id=reference,
        commit_id=commit,
    )
    return LocatedChange(made, workload)


def test_what_only_the_anchor_shows_is_an_incident_of_its_own():
    step, drift = change(4, 5), change(1, 9, series=2)
    drift = drift._replace(change=drift.change._replace(evidence="anchor"))
    assert group([drift, step], PLACES) == [[step], [drift]]


CHANGES = st.builds(
    lambda reference, width, workload, variant, series, worse: change(
        reference, reference + width, workload=workload, variant=variant, series=series, worse=worse
    ),
    st.integers(0, 12),
    st.integers(1, 6),
    st.sampled_from(["dense", "lstm", "gru"]),
    st.sampled_from(["fused", "native"]),
    st.integers(1, 4),
    st.booleans(),
)


def of_numbers(groups):
    return sorted(sorted(map(repr, part)) for part in groups)


@given(st.lists(CHANGES, max_size=12), st.randoms())
def test_the_order_of_changes_decides_nothing(changes, chance):
    shuffled = [*changes]
    chance.shuffle(shuffled)
    assert of_numbers(group(changes, PLACES)) == of_numbers(group(shuffled, PLACES))


@given(st.lists(CHANGES, max_size=12))
def test_every_change_is_in_one_group_whose_members_one_commit_can_have_caused(changes):
    groups = group(changes, PLACES)
    assert of_numbers([[each] for part in groups for each in part]) == of_numbers([[each] for each in changes])
    for part in groups:
        assert max(each.change.reference_id for each in part) < min(each.change.commit_id for each in part)
        assert len({each.change.incident_kind for each in part}) == 1
        joined = {0}
        for _ in part:
            joined |= {
                place
                for place, each in enumerate(part)
                if any(
                    each.workload == part[other].workload or each.change.variant == part[other].change.variant
                    for other in joined
                )
            }
        assert len(joined) == len(part)


def test_sizes_metrics_machines_and_a_tier_across_workloads_are_one_incident():
    lstm = [change(6, 7, series=1), change(6, 7, series=2), change(6, 7, series=1, machine=2)]
    tier = change(5, 8, workload="gru", series=3)
    other = change(6, 7, workload="gru", variant="native", series=4)
    (only,) = group([*lstm, tier, other], PLACES)
    assert len(only) == 5


def test_directions_kinds_and_commits_that_do_not_meet_are_apart():
    apart = [
        change(6, 7),
        change(6, 7, series=2, worse=False),
        change(6, 7, kind="wrong_gradient"),
        change(7, 8, series=3),
        change(6, 7, workload="gru", variant="native", series=4),
    ]
    assert len(group(apart, PLACES)) == 5


def test_a_wide_range_does_not_join_two_commits():
    groups = group([change(6, 7, series=1), change(8, 9, series=2), change(2, 12, series=3)], PLACES)
    assert [[(each.change.reference_id, each.change.commit_id) for each in part] for part in groups] == [
        [(6, 7)],
        [(8, 9), (2, 12)],
    ]


def test_a_wide_range_is_of_the_incident_of_its_own_case_and_variant():
    """A drift with a stair that one machine showed exactly, and later steps of its variant and of its workload."""
    stair, drift = change(3, 4), change(1, 18, machine=2)
    of_variant = change(8, 9, workload="gru", series=2)
    of_workload = change(11, 12, variant="native", series=3)
    last = change(15, 16, workload="dense", series=4)
    for order in ([drift, stair, of_variant, of_workload, last], [last, of_workload, of_variant, drift, stair]):
        assert group(order, PLACES) == [[stair, drift], [of_variant], [of_workload], [last]]


@pytest.mark.parametrize(("width", "number"), [(17, 2), (8, 1), (1, 1)])
def test_a_wide_range_is_not_linked_by_its_variant_alone_to_a_commit_of_another_workload(width, number):
    assert len(group([change(17 - width, 18), change(16, 17, workload="gru", series=2)], PLACES)) == number
    assert len(group([change(17 - width, 18), change(16, 17, series=2)], PLACES)) == 1


def test_an_incident_goes_on_where_most_of_its_changes_are():
    held = {"a": 1, "b": 1, "c": 1, "d": 2}
    assert successors([["a"], ["b", "c", "d"], ["e"]], held) == [(None, []), (1, [2]), (None, [])]
    assert successors([["a"], ["b"]], {"a": 3, "b": 3}) == [(3, []), (None, [])]


def test_groups_come_in_the_order_of_their_commits():
    changes = [change(number, number + 1, series=number) for number in range(10)]
    random.Random(1).shuffle(changes)
    assert [part[0].change.commit_id for part in group(changes, PLACES)] == list(range(1, 11))
