"""The agent's main loop where a job or the machine goes wrong under it."""

import json
from types import SimpleNamespace

import httpx
import pytest

from pullback_runners.agent.client import Claim, Job, Lease, ServiceClient
from pullback_runners.agent.daemon import AgentOptions, _Agent
from pullback_runners.sandbox.isolation import Isolation

LEASE = Lease(job_id="7", attempt=1, token="00000000-0000-4000-8000-000000000007", heartbeat_s=15.0)  # noqa: S106
CLAIM = Claim(Job("demo", {"sha": "a" * 40}, "trial", (), 60.0), LEASE)


@pytest.fixture
def service():
    """The bodies of what a service was sent, by the last part of the address."""
    return {}


@pytest.fixture
def agent(tmp_path, service):
    def answer(request):
        service[request.url.path.rpartition("/")[2]] = request.content
        return httpx.Response(200, json={"answer": "continue", "heartbeat_s": 15.0})

    options = AgentOptions("http://service.test", tmp_path, least_free_bytes=0)
    with ServiceClient(options.server, transport=httpx.MockTransport(answer)) as client:
        agent = _Agent(options, client, SimpleNamespace(), frozenset(), Isolation())
        agent._uploads.start()
        yield agent


def test_an_error_that_nobody_expected_fails_the_job_and_not_the_agent(agent, service, monkeypatch):
    def fail(*_):
        raise RecursionError("of the text of a commit")

    monkeypatch.setattr(agent._repositories, "with_commits", fail)
    agent._do(CLAIM)
    said = json.loads(service["fail"])
    assert [said["kind"], said["retryable"]] == ["infra", True]
    assert said["message"] == "The agent failed at this job (RecursionError): look at its log."
    assert list(agent._jobs.iterdir()) == []
