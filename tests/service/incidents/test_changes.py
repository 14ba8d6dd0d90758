"""Which changes support what is said of an incident, and where its range lies."""

import pytest

from pullback_service.incidents.changes import Change, supporting
from pullback_service.incidents.transitions import locate
from pullback_service.models.incidents import Incident

PLACES = {number: number for number in range(100)}


def change(standing, reference, commit, *, variant="fused", case=1):
    return Change(case, 1, case, variant, "step", True, "paired", standing, reference, commit, log_ratio=0.06)


CLAIM = change("claimed", 33, 59)


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ([change("ambiguous", 52, 53, variant="native")], (33, 59)),
        ([change("refuted", 52, 53, variant="native")], (33, 59)),
        ([change("suspected", 52, 53, variant="native")], (33, 59)),
        ([change("suspected", 52, 53, case=2)], (33, 59)),
        ([change("ambiguous", 40, 53)], (33, 59)),
        ([change("claimed", 40, 65, variant="native")], (40, 59)),
        ([change("suspected", 40, 53)], (40, 53)),
        ([change("borne_out", 40, 65)], (40, 59)),
    ],
)
def test_what_is_claimed_is_narrowed_by_nothing_but_claims_and_suspicions_of_the_same(others, found):
    incident = Incident()
    locate(incident, [*others, CLAIM], PLACES)
    assert (incident.reference_id, incident.commit_id) == found


def test_where_nothing_is_claimed_all_that_is_not_refuted_decides():
    incident = Incident()
    locate(incident, [change("suspected", 3, 9), change("ambiguous", 5, 12), change("refuted", 7, 8)], PLACES)
    assert (incident.reference_id, incident.commit_id) == (5, 9)


@pytest.mark.parametrize(
    ("standings", "found"),
    [
        (["claimed", "suspected", "borne_out", "ambiguous", "refuted"], ["claimed", "suspected", "borne_out"]),
        (["suspected", "ambiguous", "refuted"], ["suspected", "ambiguous"]),
        (["refuted"], ["refuted"]),
        ([], []),
    ],
)
def test_what_was_measured_without_an_answer_supports_no_claim(standings, found):
    assert [each.standing for each in supporting(change(standing, 1, 2) for standing in standings)] == found
