"""The state of an incident by its changes, its measurements and a verdict, one rule at a time."""

import pytest

from pullback_service.incidents.changes import Change
from pullback_service.incidents.lifecycle import Control, is_caused_by_machine, is_left_open, state_of

SUSPECTED = Change(1, 1, 1, "fused", "step", True, "levels", "suspected", 10, 11, log_ratio=0.1)
BORNE_OUT = SUSPECTED._replace(standing="borne_out")
AMBIGUOUS = SUSPECTED._replace(standing="ambiguous")
REFUTED = SUSPECTED._replace(standing="refuted")
PAIRED = SUSPECTED._replace(evidence="paired", standing="claimed")
COUNTED = PAIRED._replace(evidence="exact", series_id=2)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ([SUSPECTED], "suspected"),
        ([SUSPECTED, BORNE_OUT], "likely"),
        ([AMBIGUOUS, BORNE_OUT], "unconfirmed"),
        ([REFUTED], "refuted"),
        ([REFUTED, SUSPECTED], "suspected"),
        ([SUSPECTED, PAIRED], "confirmed"),
        ([AMBIGUOUS, COUNTED], "confirmed"),
        ([PAIRED._replace(ended_id=12)], "resolved"),
        ([PAIRED._replace(ended_id=12), COUNTED], "confirmed"),
        ([PAIRED._replace(ended_id=12), SUSPECTED], "resolved"),
        ([SUSPECTED._replace(ended_id=12), REFUTED], "unconfirmed"),
    ],
)
def test_changes_alone_have_a_state(changes, state):
    assert state_of(changes) == state


@pytest.mark.parametrize(
    ("was", "state"), [("confirmed", "resolved"), ("likely", "resolved"), ("suspected", "unconfirmed")]
)
def test_a_suspicion_that_ended_is_resolved_if_it_was_announced(was, state):
    assert state_of([BORNE_OUT._replace(ended_id=12)], was=was) == state


@pytest.mark.parametrize(
    ("changes", "facts", "state"),
    [
        ([BORNE_OUT], {"is_measured_again": True, "ran_out_of_time": True}, "confirming"),
        ([AMBIGUOUS], {"is_measured_again": True, "was_measured": True}, "confirming"),
        ([BORNE_OUT], {"ran_out_of_time": True, "may_be_measured": True}, "unconfirmed"),
        ([BORNE_OUT], {"ran_out_of_time": True}, "likely"),
        ([BORNE_OUT], {"ran_out_of_time": True, "was_measured": True}, "unconfirmed"),
        ([SUSPECTED], {"ran_out_of_time": True}, "unconfirmed"),
        ([BORNE_OUT], {"may_be_measured": True}, "suspected"),
        ([BORNE_OUT], {"was_measured": True}, "unconfirmed"),
        ([AMBIGUOUS], {"may_be_measured": True}, "suspected"),
        ([BORNE_OUT], {"may_be_machine": True}, "unconfirmed"),
        ([SUSPECTED], {"may_be_machine": True}, "suspected"),
        ([PAIRED], {"may_be_machine": True, "was_measured": True, "ran_out_of_time": True}, "confirmed"),
    ],
)
def test_what_is_known_of_its_measurement_decides_about_a_suspicion_and_about_no_claim(changes, facts, state):
    assert state_of(changes, **facts) == state


@pytest.mark.parametrize(
    ("verdict", "state"), [("expected", "resolved"), ("fixed", "resolved"), ("noise", "refuted"), ("real", "confirmed")]
)
def test_a_verdict_comes_first_and_real_decides_nothing(verdict, state):
    assert state_of([PAIRED], verdict=verdict, is_measured_again=True) == state


@pytest.mark.parametrize(
    ("control", "state"),
    [
        (None, "confirmed"),
        (SUSPECTED._replace(case_id=2, evidence="paired", standing="claimed", log_ratio=0.05), "refuted"),
        (SUSPECTED._replace(case_id=2, evidence="paired", standing="claimed", log_ratio=0.04), "confirmed"),
        (SUSPECTED._replace(case_id=2, evidence="paired", standing="ambiguous", log_ratio=0.09), "confirmed"),
    ],
)
def test_an_unaffected_case_that_moved_by_half_as_much_accuses_the_machine(control, state):
    changes = [PAIRED] if control is None else [PAIRED, control]
    assert state_of(changes, controls=[Control(2, 10, 11)]) == state


def test_one_claim_that_the_machine_does_not_explain_keeps_the_incident():
    control = PAIRED._replace(case_id=2, log_ratio=0.09)
    controls = [Control(2, 10, 11)]
    assert is_caused_by_machine([PAIRED, control], controls)
    assert not is_caused_by_machine([PAIRED, control, COUNTED], controls)
    assert not is_caused_by_machine([PAIRED, control, PAIRED._replace(commit_id=12)], controls)
    assert not is_caused_by_machine([PAIRED, control], [])


@pytest.mark.parametrize(("slower", "state"), [(0.05, "unconfirmed"), (0.04, "confirmed"), (0.0, "confirmed")])
def test_an_unaffected_case_that_one_job_alone_found_slower_leaves_it_open(slower, state):
    controls = [Control(2, 10, 11, slower)]
    assert is_left_open([PAIRED], controls) is (state == "unconfirmed")
    assert state_of([PAIRED], controls=controls, was_measured=True) == state
