"""The agent's main loop where a job or the machine goes wrong under it."""

import errno
import json
import threading
from types import SimpleNamespace

import httpx
import pytest

from pullback_runners.agent.claims import Claim, Job, Lease
from pullback_runners.agent.client import ServiceClient
from pullback_runners.agent.daemon import AgentOptions, _Agent
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.agent.job_folder import JobFolder
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
        yield _Agent(options, client, SimpleNamespace(), frozenset(), Isolation())
        for thread in threading.enumerate():
            if thread.name == "heartbeat":  # it may be about to send the last one
                thread.join(10)


def test_an_error_that_nobody_expected_fails_the_job_and_not_the_agent(agent, service, monkeypatch):
    def fail(*_):
        raise RecursionError("of the text of a commit")

    monkeypatch.setattr(agent._repositories, "with_commits", fail)
    agent._uploads.start()
    agent._do(CLAIM)
    said = json.loads(service["fail"])
    assert [said["kind"], said["retryable"]] == ["infra", True]
    assert said["message"] == "The agent failed at this job (RecursionError): look at its log."
    assert list(agent._jobs.iterdir()) == []


def _no_room(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def full_disk(agent, monkeypatch):
    """A disk that has no room for a report as long as a job's files are there."""
    put = agent._spool.put
    monkeypatch.setattr(
        agent._spool, "put", lambda delivery: _no_room() if any(agent._jobs.glob("*/work/*")) else put(delivery)
    )


@pytest.mark.usefixtures("full_disk")
def test_a_job_that_filled_the_disk_is_told_to_the_service(agent, service, monkeypatch):
    def fill(*_):
        (agent._jobs / "7-1" / "work" / "file").touch()
        raise JobFailedError("workload", "the disk ran full")

    monkeypatch.setattr(agent._repositories, "with_commits", fill)
    agent._uploads.start()
    agent._do(CLAIM)
    assert json.loads(service["fail"])["message"] == "the disk ran full"
    assert list(agent._jobs.iterdir()) == []


@pytest.mark.usefixtures("full_disk")
def test_an_agent_starts_beside_a_job_that_filled_the_disk(agent):
    (JobFolder.create(agent._jobs, LEASE, "key").work / "file").touch()
    agent._settle_leftovers()
    assert len(agent._spool.waiting()) == 1
    assert list(agent._jobs.iterdir()) == []


def test_a_disk_that_others_filled_ends_no_start_and_the_next_one_tells_of_the_job(agent):
    folder = JobFolder.create(agent._jobs, LEASE, "key")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(agent._spool, "put", _no_room)
        agent._settle_leftovers()
    assert folder.remembered() == (LEASE, "key")
    agent._settle_leftovers()
    assert len(agent._spool.waiting()) == 1


def test_no_job_is_claimed_while_processes_of_an_earlier_one_run(agent, monkeypatch):
    user = SimpleNamespace(name="builder", end_all=lambda: False)
    monkeypatch.setattr(agent, "_isolation", SimpleNamespace(user=user))
    assert agent._trouble() == "processes of the build user builder do not end; end them by hand"
    user.end_all = lambda: True
    assert agent._trouble() is None
