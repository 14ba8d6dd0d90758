"""What CI says of a change, and the parts of a check that need no service."""

import json

import pytest

from pullback_cli.checking.ci_context import CiContext, find_base, find_head, read_ci_context
from pullback_cli.checking.comparison_job import duration_s
from pullback_cli.usage_errors import RefusalError


@pytest.mark.parametrize(("text", "seconds"), [("20m", 1200), ("90s", 90), ("1.5h", 5400), ("0", 0), ("7", 7)])
def test_a_wait_has_a_unit_or_is_in_seconds(text, seconds):
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "20 minutes", "1d", "nan"])
def test_other_waits_are_refused(text):
    with pytest.raises(RefusalError, match="is not a duration"):
        duration_s(text)


def test_the_head_of_a_pull_request_is_that_of_the_event_and_of_a_merge_request_that_of_its_branch(tmp_path):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": "a" * 40}}}))
    at_github = {"GITHUB_EVENT_PATH": str(event), "GITHUB_BASE_REF": "main", "GITHUB_TOKEN": " t "}
    found = read_ci_context(at_github)
    assert (found.head, found.base, found.pull_request, found.github_token) == ("a" * 40, "main", 7, "t")
    merged = {"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "b" * 40, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "trunk"}
    assert read_ci_context(merged) == CiContext(head="b" * 40, base="trunk")
    assert read_ci_context({"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": ""}) == CiContext()


@pytest.mark.parametrize(
    "event", ["", "[]", "{", '{"pull_request": null}', '{"pull_request": {"head": 1, "number": "7"}}']
)
def test_an_event_that_cannot_be_read_says_nothing(tmp_path, event):
    file = tmp_path / "event.json"
    file.write_text(event)
    assert read_ci_context({"GITHUB_EVENT_PATH": str(file)}) == CiContext()
    assert read_ci_context({"GITHUB_EVENT_PATH": str(tmp_path / "none")}) == CiContext()


def test_names_need_no_clone_and_revisions_do(tmp_path):
    assert find_head("topic", tmp_path, CiContext()).sha == "topic"
    assert find_head(None, tmp_path, CiContext(head="a" * 40)).sha == "a" * 40
    assert find_base("main", tmp_path, CiContext()) == "main"
    assert find_base(None, tmp_path, CiContext(base="trunk")) == "trunk"
    with pytest.raises(RefusalError, match="name the commit with --head"):
        find_head(None, tmp_path, CiContext())
    with pytest.raises(RefusalError, match="has no revision"):
        find_base("HEAD~1", tmp_path, CiContext())
