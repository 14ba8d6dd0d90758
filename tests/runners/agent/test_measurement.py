import json
import threading
import time
from pathlib import Path

import psutil
import pytest

import pullback
from pullback.backends.native.availability import why_not
from pullback_runners.agent.client import Claim, Job, Lease
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.agent.jobfolder import JobFolder
from pullback_runners.agent.leftovers import settle
from pullback_runners.agent.measurement import measure
from pullback_runners.agent.process_mark import ProcessMark

ENGINE = Path(pullback.__file__).parent.parent
COMMIT = {
    "sha": "a" * 40,
    "parents": [],
    "branch": "main",
    "author": "A",
    "authored_at": None,
    "title": "t",
    "dirty": False,
}
KEY = "0b0e6b0e-0000-4000-8000-000000000001"


def _claim(suite="trial", cases=("poly9_broadcast*",), timeout_s=120.0, reference=None):
    lease = Lease(job_id="7", attempt=1, token="00000000-0000-4000-8000-000000000007", heartbeat_s=15.0)  # noqa: S106
    return Claim(Job("pullback", COMMIT, suite, cases, timeout_s, reference), lease)


def _measure(claim, folder, *, reference=None, device="cpu", tell=lambda _: None, cancelled=lambda: False):
    return measure(
        claim,
        ENGINE,
        folder,
        KEY,
        reference=reference,
        device=device,
        exact=True,
        cpus=frozenset(),
        tell=tell,
        cancelled=cancelled,
    )


def _runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def folder(tmp_path):
    return JobFolder.create(tmp_path, _claim().lease, KEY)


def test_a_job_gives_a_report_with_its_commit_its_key_and_real_ratios(folder):
    steps = []
    report = _measure(_claim(), folder, tell=steps.append)
    assert (report["id"], report["commit"], report["harness"]["job"]) == (KEY, COMMIT, {"id": "7", "attempt": 1})
    (case,) = report["cases"]
    assert case["error"] is None
    assert [(pair["variant"], pair["n"]) for pair in case["paired"] if pair["metric"] == "time"] == [
        ("fused", 2),
        ("stateful", 2),
        *([] if why_not() else [("native", 2)]),
        ("numpy", 2),
    ]
    assert steps[-1].done == steps[-1].total
    assert "poly9_broadcast" in folder.log.read_text()


@pytest.mark.parametrize(("sha", "cases"), [(COMMIT["sha"], 0), ("b" * 40, 1)])
def test_a_job_that_compares_gives_comparisons_and_of_a_commit_with_itself_nothing_else(folder, sha, cases):
    schemas = pytest.importorskip("pullback_service.reports.schemas", reason="the service's extra is not installed")
    report = _measure(_claim(reference={**COMMIT, "sha": sha}), folder, reference=ENGINE)
    assert (report["id"], report["commit"], report["harness"]["job"]) == (KEY, COMMIT, {"id": "7", "attempt": 1})
    assert len(report["cases"]) == cases
    times = [row for row in report["comparisons"] if row["metric"] == "time"]
    assert {row["variant"] for row in times} >= {"unfused", "fused", "stateful"}
    assert {(row["reference"], row["candidate"]) for row in times} == {(sha, COMMIT["sha"])}
    stored = schemas.ReportDocument.model_validate(report)
    assert {len(row.log_ratios) for row in stored.comparisons if row.metric == "time"} == {2}


def test_a_suite_that_does_not_exist_is_a_failed_job_with_the_reason(folder):
    with pytest.raises(JobFailedError, match="nonsense") as caught:
        _measure(_claim(suite="nonsense"), folder)
    assert (caught.value.kind, caught.value.retryable) == ("workload", False)


def test_a_cancelled_job_ends_with_all_its_processes(folder):
    seen = []

    def cancelled():
        mark = folder.measuring()
        workers = psutil.Process(mark.pid).children(recursive=True) if mark and mark.process() else []
        seen.extend(worker.pid for worker in workers)
        return bool(seen)

    with pytest.raises(JobFailedError) as caught:
        _measure(_claim(), folder, cancelled=cancelled)
    assert caught.value.kind == "cancelled"
    assert folder.measuring().process() is None
    assert not [pid for pid in seen if _runs(pid)]


def test_a_job_past_its_time_is_ended(folder):
    with pytest.raises(JobFailedError, match="not finished after 1 s") as caught:
        _measure(_claim(timeout_s=1.0), folder)
    assert caught.value.kind == "timeout"
    assert folder.measuring().process() is None


def test_a_measuring_process_that_is_killed_is_the_machines_fault(folder):
    def kill():
        while not (mark := folder.measuring()):
            time.sleep(0.05)
        psutil.Process(mark.pid).kill()

    threading.Thread(target=kill).start()
    with pytest.raises(JobFailedError, match="signal 9") as caught:
        _measure(_claim(), folder)
    assert (caught.value.kind, caught.value.retryable) == ("infra", True)


def test_the_measured_code_sees_no_secret(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("PULLBACK_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret@host/pullback")
    environments = []

    def look(_):
        processes = [psutil.Process(folder.measuring().pid)]
        environments.extend(process.environ() for process in processes + processes[0].children(recursive=True))

    _measure(_claim(), folder, tell=look)
    names = set().union(*environments)
    assert "PATH" in names
    assert not {name for name in names if "TOKEN" in name or "DATABASE" in name}


def test_leftovers_without_a_report_are_said_to_have_failed(folder):
    delivery = settle(folder)
    assert delivery.path == "/api/v1/jobs/7/attempts/1/fail"
    assert (delivery.body["kind"], delivery.body["retryable"]) == ("infra", True)


def test_a_finished_report_of_a_killed_agent_is_delivered(folder):
    folder.report.write_text(json.dumps({"id": KEY}))
    delivery = settle(folder)
    assert (delivery.path, delivery.key, delivery.body) == ("/api/v1/jobs/7/attempts/1/report", KEY, {"id": KEY})


def test_processes_of_a_killed_agent_are_ended(folder):
    sleeper = psutil.Popen(["sleep", "60"], start_new_session=True)
    folder.mark_measuring(ProcessMark.of(sleeper.pid))
    settle(folder)
    assert sleeper.wait(5) != 0


def test_a_folder_without_a_lease_has_nothing_to_say(tmp_path):
    assert settle(JobFolder(tmp_path / "half-made")) is None


def test_a_job_is_measured_on_the_agents_device(folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(JobFailedError, match="^--device cuda: no CUDA device is seen by jax or torch") as raised:
        _measure(_claim(), folder, device="cuda")
    assert (raised.value.kind, raised.value.retryable) == ("workload", False)
