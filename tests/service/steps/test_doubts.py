"""Reasons as codes: every sentence of the rule comes back as it was."""

import inspect
import re

import pytest

from pullback_service import uploaded_claims
from pullback_service.comparisons import judging
from pullback_service.steps.doubts import WORDS, code_of, words_of
from pullback_service.uploaded_claims import doubt_of_change

SENTENCES = re.findall(r'"([A-Z][^"{}]*\.)"', inspect.getsource(judging) + inspect.getsource(uploaded_claims))


def test_the_rule_has_sentences():
    assert len(SENTENCES) > 10


@pytest.mark.parametrize("reason", [*SENTENCES, doubt_of_change("numpy 1.26, then 2.0"), "Something new."])
def test_a_reason_comes_back_as_it_was(reason):
    assert words_of(*code_of(reason)) == reason


def test_sentences_of_usual_steps_are_stored_as_codes():
    usual = [each for each in SENTENCES if each.startswith(("Measured at", "Both commits", "Counted with"))]
    assert len(usual) > 3
    assert {code_of(each)[1] for each in usual} == {None}


def test_what_differs_from_case_to_case_is_kept_beside_the_code():
    assert code_of(doubt_of_change("numpy 1.26, then 2.0")) == ("software", "numpy 1.26, then 2.0")
    assert code_of("Measured by different methods, 'a' and 'b'.") == ("methods", "'a' and 'b'")
    assert code_of(None) == (None, None)


def test_a_code_of_a_newer_release_is_shown_as_it_is():
    assert words_of("of_tomorrow", None) == "of_tomorrow"
    assert "of_tomorrow" not in WORDS
