import json

import httpx
import pytest

from pullback_runners.agent.claims import Lease
from pullback_runners.agent.client import ServiceClient, SpoolStatement
from pullback_runners.agent.errors import PermanentError, RefusedError, TransientError
from pullback_runners.progress import Progress

LEASE = Lease(job_id="7", attempt=2, token="00000000-0000-4000-8000-000000000007", heartbeat_s=15.0)  # noqa: S106


def _client(answer):
    return ServiceClient("http://service.test", transport=httpx.MockTransport(answer))


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_busy_or_broken_service_is_a_transient_error(status):
    with _client(lambda _: httpx.Response(status)) as client, pytest.raises(TransientError, match=str(status)):
        client.claim(1, labels={}, wait_s=0)


def test_no_connection_is_a_transient_error():
    def fail(request):
        raise httpx.ConnectError("refused", request=request)

    with _client(fail) as client, pytest.raises(TransientError, match=r"http://service\.test does not answer"):
        client.claim(1, labels={}, wait_s=0)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_a_refusal_is_permanent_and_says_why(status):
    answer = httpx.Response(status, json={"detail": "The agent is not known: enroll it."})
    with _client(lambda _: answer) as client, pytest.raises(RefusedError, match="enroll it") as caught:
        client.claim(1, labels={}, wait_s=0)
    assert caught.value.status == status


def test_something_that_is_no_pullback_service_is_named_as_such():
    with (
        _client(lambda _: httpx.Response(200, text="<html>")) as client,
        pytest.raises(PermanentError, match="Pullback"),
    ):
        client.enroll(name="n", labels={}, machine={"fingerprint": "f", "name": "n"})


def test_a_file_tells_when_the_service_last_answered(tmp_path):
    answered, answers = tmp_path / "answered", iter([500, 204])
    transport = httpx.MockTransport(lambda _: httpx.Response(next(answers)))
    with ServiceClient("http://service.test", transport=transport, answered=answered) as client:
        with pytest.raises(TransientError):
            client.claim(1, labels={}, wait_s=0)
        assert not answered.exists()
        client.claim(1, labels={}, wait_s=0)
        assert answered.exists()


def test_no_job_is_no_claim():
    with _client(lambda _: httpx.Response(204)) as client:
        assert client.claim(1, labels={}, wait_s=0) is None


def test_a_suite_may_be_narrowed_to_cases():
    commit = {
        "sha": "a" * 40,
        "parents": [],
        "branch": None,
        "author": None,
        "title": None,
        "authored_at": None,
        "ordered_at": "2026-01-01T00:00:00Z",
    }
    job = {"id": 7, "project": "p", "commit": commit, "suite": "quick:poly9*;mul*", "kind": "run", "timeout_s": 60}
    answer = {  # of a service that knows no effort
        "job": job,
        "attempt": 1,
        "lease_token": LEASE.token,
        "lease_s": 90,
        "heartbeat_s": 15,
    }
    with _client(lambda _: httpx.Response(200, json=answer)) as client:
        claim = client.claim(1, labels={}, wait_s=0)
    assert (claim.job.suite, claim.job.cases, claim.job.effort) == ("quick", ("poly9*", "mul*"), 1)
    assert claim.lease.path == "/api/v1/jobs/7/attempts/1"


def test_a_claim_says_what_the_agent_can_do_and_brings_the_commit_to_compare_with():
    asked = []
    commit = {
        "sha": "a" * 40,
        "parents": [],
        "branch": None,
        "author": None,
        "title": None,
        "authored_at": None,
        "ordered_at": "2026-01-01T00:00:00Z",
    }
    answer = {
        "job": {
            "id": 7,
            "project": "p",
            "commit": commit,
            "suite": "quick",
            "kind": "compare",
            "requires": {"site": "here", "device": "cpu"},
            "timeout_s": 60,
            "reference": commit,
        },
        "attempt": 1,
        "lease_token": LEASE.token,
        "lease_s": 90,
        "heartbeat_s": 15,
    }

    def serve(request):
        asked.append(json.loads(request.content))
        return httpx.Response(200, json=answer)

    with _client(serve) as client:
        claim = client.claim(1, labels={}, wait_s=0)
    assert asked[0]["kinds"] == ["run", "compare"]
    assert claim.job.reference == claim.job.commit
    assert claim.job.device == "cpu"
    assert set(claim.job.reference) == {"sha", "parents", "branch", "author", "authored_at", "title"}


@pytest.mark.parametrize("status", [404, 409, 410])
def test_a_heartbeat_for_a_lease_that_is_gone_answers_lost(status):
    with _client(lambda _: httpx.Response(status)) as client:
        assert client.heartbeat(LEASE, Progress("measure", 1, 2, "m"))[0] == "lost"


def test_a_heartbeat_sends_progress_and_brings_the_answer_back():
    seen = []

    def answer(request):
        seen.append(json.loads(request.content))
        return httpx.Response(200, json={"answer": "cancel", "heartbeat_s": 3})

    with _client(answer) as client:
        assert client.heartbeat(LEASE, Progress("measure", 1, 2, "m"), SpoolStatement(waiting=2, bytes=4096)) == (
            "cancel",
            3.0,
        )
    assert seen == [
        {
            "lease_token": LEASE.token,
            "phase": "measure",
            "progress": {"done": 1, "total": 2, "message": "m"},
            "spool": {"waiting": 2, "bytes": 4096},
        }
    ]


def test_a_log_that_continues_elsewhere_says_where():
    with _client(lambda _: httpx.Response(416, json={"expected_offset": 5})) as client:
        assert client.append_log(LEASE, 9, b"x") == 5


def test_a_delivery_carries_its_key_and_its_lease():
    def answer(request):
        assert request.headers["Idempotency-Key"] == "k"
        assert request.headers["Pullback-Lease"] == LEASE.token
        return httpx.Response(201, json={"id": "k"})

    with _client(answer) as client:
        assert client.deliver(f"{LEASE.path}/report", body=b"{}", key="k", lease_token=LEASE.token) == {"id": "k"}


def test_a_heartbeat_is_sent_without_characters_that_the_service_refuses():
    sent = []

    def serve(request):
        sent.append(json.loads(request.content)["progress"]["message"])
        return httpx.Response(200, json={"answer": "continue", "heartbeat_s": 15})

    with _client(serve) as client:
        client.heartbeat(LEASE, Progress("measure", 1, 2, "case a\0b\ud800"))
    assert sent == ["case a\ufffdb\ufffd"]
