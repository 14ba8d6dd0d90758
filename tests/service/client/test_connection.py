"""The client against answers of all kinds, and against the service itself."""

import json
import socket
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
import stamina

from pullback_service.client import (
    Client,
    NoAnswerError,
    NotThisApiError,
    ProblemError,
    every,
    models,
)


@pytest.fixture(autouse=True)
def _without_waiting():
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


def _client(answers, seen=None):
    """A client whose service gives these answers, one after the other."""
    remaining = iter(answers)

    def answer(request):
        if seen is not None:
            seen.append(request)
        found = next(remaining)
        if isinstance(found, Exception):
            raise found
        return found

    return Client("http://service.test", token="plb_secret", transport=httpx.MockTransport(answer))  # noqa: S106


def _problem(status, detail, **members):
    document = {"type": "urn:pullback:problem:forbidden", "title": "No", "status": status, "detail": detail, **members}
    return httpx.Response(status, json=document)


def test_a_problem_is_one_exception_whose_text_is_the_remedy():
    errors = [{"path": "query.project", "message": "is needed"}]
    answer = _problem(403, "Use a token with the scope upload.", errors=errors, request_id="r")
    with _client([answer]) as client, pytest.raises(ProblemError, match="scope upload") as caught:
        client.list_projects()
    problem = caught.value
    assert (problem.status, problem.slug, problem.request_id, problem.is_transient) == (403, "forbidden", "r", False)
    assert [(error.path, error.message) for error in problem.errors] == [("query.project", "is needed")]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_reading_is_tried_again_when_the_service_is_busy(status):
    seen = []
    page = httpx.Response(200, json={"items": [], "next": None})
    with _client([httpx.Response(status), httpx.Response(status), page], seen) as client:
        assert client.list_projects().items == []
    assert len(seen) == 3


def test_a_refusal_is_not_tried_again():
    seen = []
    with _client([_problem(422, "no")] * 3, seen) as client, pytest.raises(ProblemError):
        client.list_projects()
    assert len(seen) == 1


def test_an_upload_is_tried_again_with_the_same_key_and_a_token_is_made_once():
    seen = []
    receipt = {
        "id": str(uuid4()),
        "url": "/x",
        "project": "p",
        "commit": "a" * 40,
        "status": "accepted",
        "cases": 1,
        "points": 1,
        "failures": 0,
        "format": "pyperf",
    }
    lost = httpx.ReadError("cut")
    with _client([lost, httpx.Response(201, json=receipt)], seen) as client:
        answer = client.upload_report(b"{}", project="p", dry_run=False, idempotency_key="k")
    assert (answer.was_created, answer.points) == (True, 1)
    assert [request.headers["Idempotency-Key"] for request in seen] == ["k", "k"]
    assert dict(seen[0].url.params) == {"project": "p", "dry_run": "false"}
    assert seen[0].headers["Authorization"] == "Bearer plb_secret"
    seen.clear()
    with (
        _client([lost] * 3, seen) as client,
        pytest.raises(NoAnswerError, match=r"http://service\.test does not answer"),
    ):
        client.create_token(models.TokenRequest(name="ci", scopes=["upload"]))
    assert len(seen) == 1


def test_what_was_not_said_is_not_sent():
    seen = []
    with _client([_problem(404, "no")], seen) as client, pytest.raises(ProblemError):
        client.change_project("a/b c", models.ProjectChange(public_read=True))
    assert json.loads(seen[0].content) == {"public_read": True}
    assert seen[0].url.raw_path == b"/api/v1/projects/a/b%20c"


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"items": 3}'])
def test_an_answer_of_something_else_is_named_as_such(content):
    with _client([httpx.Response(200, content=content)]) as client, pytest.raises(NotThisApiError, match="Pullback"):
        client.list_projects()


def test_members_of_a_newer_service_do_not_matter():
    answer = httpx.Response(200, json={"items": [], "next": None, "total": 4})
    with _client([answer]) as client:
        assert client.list_machines().next is None


def test_lists_are_read_page_after_page():
    pages = iter([SimpleNamespace(items=[1, 2], next="c"), SimpleNamespace(items=[3], next=None)])
    asked = []

    def page(**query):
        asked.append(query)
        return next(pages)

    assert list(every(page, project="demo")) == [1, 2, 3]
    assert asked == [{"project": "demo"}, {"project": "demo", "cursor": "c"}]


def test_the_client_speaks_to_a_service(url, report):
    with Client(url) as client:
        first = client.upload_report(json.dumps(report))
        again = client.upload_report(report)
        assert (first.was_created, again.was_created, first.id == again.id) == (True, False, True)
        assert (client.read_report(first.id)).document["project"] == "demo"
        names = [each.name for each in every(client.list_machines)]
        assert names == ["box"]
        body = client.read_body_of_report(first.id)
        assert (json.loads(body.content), body.media_type) == (report, "application/json")
        commit = models.JobCommit(sha=report["commit"]["sha"])
        job = client.create_job(models.JobRequest(project="demo", commit=commit, suite="quick"))
        machine = models.MachineStatement(fingerprint="f", name="n")
        agent = client.enroll_agent(models.Enrolment(name="a", machine=machine))
        claim = client.claim_job(agent.agent_id, models.ClaimRequest(wait_s=0))
        assert claim.job.id == job.id
        stored = client.append_log(job.id, 1, b"words", offset=0, lease=claim.lease_token)
        assert stored.size == 5
        log = client.read_log(job.id)
        assert (log.content, log.headers["pullback-next-offset"]) == (b"words", "5")
        waited = client.read_log(job.id, offset=5, wait_s=0.1)
        assert (waited.content, waited.headers["pullback-job-state"]) == (b"", "leased")
        assert client.claim_job(agent.agent_id, models.ClaimRequest(wait_s=0)) is not None  # the same lease again
        with pytest.raises(ProblemError) as caught:
            client.append_log(job.id, 1, b"x", offset=9, lease=claim.lease_token)
        assert caught.value.members["expected_offset"] == 5


def test_a_service_that_takes_a_request_and_never_answers_is_waited_for_a_bounded_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the system takes connections for it
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(server, timeout_s=0.2, attempts=1) as client,
            pytest.raises(NoAnswerError, match=rf"^{server} does not answer GET /api/v1/projects \(timed out\)$"),
        ):
            client.list_projects()
