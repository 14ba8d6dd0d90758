"""The device of an agent: held for a job, watched meanwhile, and given up when it is lost."""

import os
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.runners.conftest import DEVICES, git

from pullback_runners.agent import daemon, measurement
from pullback_runners.agent.claims import Claim, Job, Lease
from pullback_runners.agent.daemon import AgentOptions, _Agent
from pullback_runners.agent.device import AgentDevice
from pullback_runners.agent.errors import JobFailedError, PermanentError
from pullback_runners.agent.job_folder import JobFolder
from pullback_runners.agent.measurement import measure
from pullback_runners.agent.signals import StopAgent
from pullback_runners.machine.device_lock import device_lock
from pullback_runners.machine.nvml import LostDeviceError, nvml
from pullback_runners.sandbox.isolation import Isolation

H200 = "GPU-11111111-aaaa-4aaa-8aaa-111111111111"
NAME = "touch_large_array[n=100000,form=index,f8,cuda]"
LOST = "the driver has lost NVIDIA H200"


@pytest.fixture
def device(nvml_answers):
    with nvml() as library:
        return AgentDevice(library.named(None))


@pytest.mark.parametrize("failure", [None, JobFailedError("workload", "a wrong gradient"), ValueError("a bug")])
def test_whatever_a_job_comes_to_on_a_device_that_is_lost_meanwhile_is_the_machines_failure(
    device, nvml_answers, failure
):
    def fail():
        nvml_answers("lost")
        if failure is not None:
            raise failure

    with pytest.raises(JobFailedError, match=LOST) as raised, device.held():
        fail()
    assert (raised.value.kind, raised.value.retryable) == ("infra", True)
    nvml_answers("quiet")
    assert device.trouble().startswith(LOST)  # until somebody has looked after it and started the agent again
    with device_lock(H200):  # and it was given back
        pass


def test_a_job_that_failed_by_itself_is_blamed_and_the_agent_goes_on(device):
    with pytest.raises(JobFailedError, match="a wrong gradient") as raised, device.held():
        raise JobFailedError("workload", "a wrong gradient")
    assert raised.value.kind == "workload"
    with suppress(StopAgent), device.held():
        raise StopAgent
    assert device.trouble() is None


def test_a_device_is_held_for_a_job_and_one_that_is_held_is_no_failure_of_the_job(device):
    with device.held():
        assert device.trouble().startswith(f"device {H200} is held by process {os.getpid()} ")
        with pytest.raises(JobFailedError, match="is held by process") as raised, device.held():
            pass
    assert (raised.value.kind, raised.value.retryable) == ("infra", True)
    assert device.trouble() is None


def test_an_idle_device_that_comes_back_is_measured_on_again(device, nvml_answers):
    nvml_answers("lost")
    assert device.trouble().startswith(LOST)
    nvml_answers("quiet")
    assert device.trouble() is None


def test_while_a_job_is_measured_others_are_seen_and_a_loss_ends_it(device, nvml_answers, monkeypatch):
    monkeypatch.setattr("pullback_runners.agent.device._CHECK_EVERY_S", 0.0)
    other = 2**22 + 1
    nvml_answers("quiet", processes=[[], ["self"], ["self", other], []])
    report = {"id": "7", "harness": {"quality": "clean", "contamination": [], "limits": [], "suite": "quick"}}
    with device.held() as of_job:
        stops = of_job.watching(lambda: "cancelled")
        assert stops() == "cancelled"
        assert of_job.marked(report) is report
        stops()
    marked = of_job.marked(report)
    assert (marked["id"], marked["harness"]["quality"], marked["harness"]["suite"]) == ("7", "contaminated", "quick")
    (limit,) = marked["harness"]["limits"]
    assert marked["harness"]["contamination"] == [limit["sentence"]]
    assert f"process {other} (between)" in limit["sentence"]
    assert of_job.marked(marked) is marked  # what the run itself saw is said once
    with device.held() as of_job:
        stops = of_job.watching(lambda: None)
    nvml_answers("lost")
    with pytest.raises(LostDeviceError):
        stops()


@pytest.fixture
def agent(tmp_path):
    """An agent of a service that takes every word."""

    def agent(device, *, once):
        told = []
        client = SimpleNamespace(decline=lambda *_, **what: told.append(what["reason"]))
        options = AgentOptions("http://127.0.0.1:1", tmp_path, once=once, least_free_bytes=0)
        return _Agent(options, client, SimpleNamespace(), frozenset(), Isolation(), device), told

    return agent


def test_an_agent_whose_device_is_lost_takes_no_job_and_says_why(device, nvml_answers, agent, monkeypatch):
    nvml_answers("lost")
    with pytest.raises(PermanentError, match=LOST):
        agent(device, once=True)[0]._wait_until_ready(SimpleNamespace(agent_id=1))
    waiting, told = agent(device, once=False)
    monkeypatch.setattr(daemon.time, "sleep", lambda _: nvml_answers("quiet"))
    waiting._wait_until_ready(SimpleNamespace(agent_id=1))
    assert [reason.startswith(LOST) for reason in told] == [True]


@pytest.fixture
def compared(clone, tmp_path, monkeypatch, nvml_answers):
    """Compares a commit with itself on a device, and gives the commit and the report."""
    monkeypatch.setenv("PYTHONPATH", str(Path(DEVICES) / "standin"), prepend=":")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", H200)
    monkeypatch.setattr(measurement, "_PASSED_ON", (*measurement._PASSED_ON, "STANDIN_NVML"))
    commit = {
        "sha": git(clone, "rev-parse", "plain"),
        "parents": [],
        "branch": "main",
        "author": "A",
        "authored_at": None,
        "title": "t",
    }
    lease = Lease(job_id="7", attempt=1, token="00000000-0000-4000-8000-000000000007", heartbeat_s=15.0)  # noqa: S106
    job = Job("demo", commit, "trial", (NAME,), 120.0, commit, variants=("torch",))
    folder = JobFolder.create(tmp_path / "jobs", lease, "0b0e6b0e-0000-4000-8000-000000000001")

    def compared():
        return commit["sha"], measure(
            Claim(job, lease),
            clone,
            folder,
            "0b0e6b0e-0000-4000-8000-000000000001",
            cache=tmp_path / "cache",
            device="cuda",
            cpus=frozenset(),
            tell=lambda _: None,
            stops=lambda: None,
        )

    return compared


@pytest.mark.long
def test_a_commit_is_compared_with_itself_on_a_device(compared):
    sha, report = compared()
    (time,) = [row for row in report["comparisons"] if row["metric"] == "time"]
    assert "error" not in time, time["error"]
    assert (time["case"]["device"], time["variant"], time["n"]) == ("cuda", "torch", 2)
    assert time["reference"] == time["candidate"] == sha
    assert all(each > 0 for each in time["reference_s"])
    assert report["harness"]["device"]["uuid"] == H200


def test_commits_that_do_not_fit_beside_what_others_hold_are_tried_again(compared, nvml_answers):
    # Each process holds 500 MB by what is free while it is alone there.
    nvml_answers("quiet", free=900_000_000, processes=[[[2**22 + 1, 149_854_820_096]]])
    with pytest.raises(JobFailedError) as raised:
        compared()
    assert (raised.value.kind, raised.value.retryable) == ("infra", True)
    assert str(raised.value) == (
        f"{NAME} torch: the processes that take turns on NVIDIA H200 ({H200}) need 1,000,000,000 bytes together "
        "(reference 500,000,000, candidate 500,000,000), and 900,000,000 of 150,754,820,096 are free "
        f"(a process without a name here, process {2**22 + 1} holds 149,854,820,096); end the process that uses the rest"
    )


@pytest.mark.long
def test_commits_that_would_not_fit_on_an_idle_device_are_tried_once(compared, nvml_answers):
    nvml_answers("quiet", memory=900_000_000)
    with pytest.raises(
        JobFailedError, match=r"no other process is known there\); compare smaller sizes, or on a larger"
    ) as raised:
        compared()
    assert (raised.value.kind, raised.value.retryable) == ("infra", False)
