"""Places and merge bases of small graphs, and what must hold for any of them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.commits.ancestry import STEP, StoredCommit, merge_base, moved_places
from pullback_service.errors import InvalidInputError

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def known(sha, days, parent=None, *, parent_days=None, dated=True, parent_dated=True):
    at = DAY + timedelta(days=days)
    above = DAY + timedelta(days=parent_days) if parent_days is not None else None
    return StoredCommit(sha, at, dated, at, parent, above, parent_dated)


def places(*commits):
    return moved_places({commit.sha: commit for commit in commits})


def test_commits_in_the_order_of_their_clocks_stay():
    assert places(known("a", 0), known("b", 1, "a"), known("c", 2, "b")) == {}


def test_a_commit_with_an_older_date_than_its_first_parent_stands_right_after_it():
    assert places(known("a", 5), known("b", 1, "a"), known("c", 1, "b")) == {
        "b": DAY + timedelta(days=5) + STEP,
        "c": DAY + timedelta(days=5) + 2 * STEP,
    }
    assert places(known("b", 1, "a", parent_days=5)) == {"b": DAY + timedelta(days=5) + STEP}


def test_a_parent_of_unknown_date_pushes_nobody_who_has_one():
    assert places(known("b", 1, "a", parent_days=5, parent_dated=False)) == {}
    assert places(known("b", 1, "a", parent_days=5, parent_dated=False, dated=False)) != {}


def test_an_ancestor_of_itself_is_refused():
    with pytest.raises(InvalidInputError, match="its own ancestor"):
        places(known("a", 0, "b"), known("b", 0, "a"))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), min_size=1, max_size=12))
def test_first_parents_always_come_first(drawn):
    commits = {}
    for number, (back, days) in enumerate(drawn):
        parent = str(number - 1 - back) if number - 1 - back >= 0 else None
        commits[str(number)] = known(str(number), days, parent)
    found = moved_places(commits)
    stands = {sha: found.get(sha, commit.ordered_at) for sha, commit in commits.items()}
    for sha, commit in commits.items():
        assert stands[sha] >= commit.heard_at
        if commit.first_parent is not None:
            assert stands[sha] > stands[commit.first_parent]


#   a - b - c - m     n is a criss-cross of c and e
#        \     /
#         d - e
PARENTS = {"b": ["a"], "c": ["b"], "d": ["b"], "e": ["d"], "m": ["c", "e"], "n": ["e", "c"], "a": []}


@pytest.mark.parametrize(
    ("one", "other", "base"),
    [("c", "e", "b"), ("e", "c", "b"), ("c", "c", "c"), ("a", "m", "a"), ("m", "e", "e"), ("m", "n", "e")],
)
def test_the_merge_base_is_the_newest_common_ancestor(one, other, base):
    newest = {sha: float(ord(sha)) for sha in PARENTS}
    found = merge_base(PARENTS, one, other, newest=newest)
    assert (found.sha, found.unknown) == (base, ())


def test_parents_nobody_told_about_are_named():
    found = merge_base({"y": ["x"], "z": ["w"]}, "y", "z", newest={})
    assert (found.sha, found.unknown) == (None, ("w", "x"))
