import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import psutil
import pytest
from tests.runners.projects.conftest import Repository

import pullback
from pullback.backends.native.availability import why_not
from pullback_runners.agent import crash_recovery
from pullback_runners.agent.claims import Claim, Job, Lease
from pullback_runners.agent.crash_recovery import put_aside, settle
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.agent.job_folder import JobFolder
from pullback_runners.agent.measurement import Deadline, _follow, measure
from pullback_runners.agent.process_mark import ProcessMark
from pullback_runners.sandbox.isolation import ConfinedProcess

COMMIT = {
    "sha": "",
    "parents": [],
    "branch": "main",
    "author": "A",
    "authored_at": None,
    "title": "t",
    "dirty": False,
}
KEY = "0b0e6b0e-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """A repository with the engine, whose first commit is older than its pullback.toml."""
    folder = tmp_path_factory.mktemp("engine")
    made = Repository(folder)
    for path in ("src", "bench", "pullback.toml"):
        shutil.move(folder / path, tmp_path_factory.mktemp("away"))
    package = Path(pullback.__file__).parent
    shutil.copytree(package, folder / "engine" / "pullback", ignore=shutil.ignore_patterns("__pycache__"))
    made.first = made.commit("The engine")
    made.write("pullback.toml", '[build]\npath = ["engine"]\nimport = ["pullback"]\n')
    made.second = made.commit("How it is built")
    return made


@pytest.fixture
def waves(tmp_path):
    """A small project that is no engine, with one commit."""
    folder = tmp_path / "waves"
    folder.mkdir()
    made = Repository(folder)
    made.first = made.commit("one")
    return made


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def _claim(sha, suite="trial", cases=(), timeout_s=120.0, reference=None, effort=1):
    lease = Lease(job_id="7", attempt=1, token="00000000-0000-4000-8000-000000000007", heartbeat_s=15.0)  # noqa: S106
    compared = None if reference is None else {**COMMIT, "sha": reference}
    return Claim(Job("demo", {**COMMIT, "sha": sha}, suite, cases, timeout_s, compared, effort=effort), lease)


@pytest.fixture
def measured(folder, cache):
    """Measure a commit of a repository, by default its first."""

    def measured(repository, sha=None, *, device="cpu", tell=lambda _: None, stops=lambda: None, **what):
        return measure(
            _claim(sha or repository.first, **what),
            repository.folder,
            folder,
            KEY,
            cache=cache,
            device=device,
            cpus=frozenset(),
            tell=tell,
            stops=stops,
        )

    return measured


def _runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def folder(tmp_path):
    return JobFolder.create(tmp_path / "jobs", _claim("a" * 40).lease, KEY)


def test_a_job_of_the_engine_gives_a_report_with_real_ratios_also_of_a_commit_before_pullback_toml(
    measured, folder, engine
):
    steps = []
    report = measured(engine, cases=("poly9_broadcast*",), tell=steps.append)
    commit = {**COMMIT, "sha": engine.first}
    assert (report["id"], report["project"], report["commit"]) == (KEY, "demo", commit)
    assert (report["harness"]["engine"], report["harness"]["job"]) == (commit, {"id": "7", "attempt": 1})
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


@pytest.mark.long
def test_a_job_that_compares_commits_of_the_engine_gives_comparisons_of_all_tiers(measured, engine):
    schemas = pytest.importorskip("pullback_service.reports.schemas", reason="the service's extra is not installed")
    report = measured(engine, engine.second, cases=("poly9_broadcast*",), reference=engine.first)
    assert (report["id"], report["commit"]["sha"]) == (KEY, engine.second)
    assert len(report["cases"]) == 1
    times = [row for row in report["comparisons"] if row["metric"] == "time"]
    assert {row["variant"] for row in times} >= {"unfused", "fused", "stateful"}
    assert {(row["reference"], row["candidate"]) for row in times} == {(engine.first, engine.second)}
    stored = schemas.ReportDocument.model_validate(report)
    assert {len(row.log_ratios) for row in stored.comparisons if row.metric == "time"} == {2}


@pytest.mark.long
def test_a_job_that_compares_a_commit_with_itself_gives_comparisons_and_nothing_else(measured, waves):
    report = measured(waves, reference=waves.first, effort=2)
    assert (report["id"], report["commit"]["sha"], report["cases"]) == (KEY, waves.first, [])
    (row,) = [row for row in report["comparisons"] if row["metric"] == "time"]
    assert row["n"] == 4  # a trial has two groups, and twice the effort is twice as many
    assert (row["variant"], row["reference"], row["candidate"]) == ("waves", waves.first, waves.first)


@pytest.mark.long
def test_a_project_is_measured_by_what_its_own_commit_says(measured, waves):
    report = measured(waves)
    (case,) = report["cases"]
    assert (report["project"], case["case"]["workload"], case["error"]) == ("demo", "total", None)
    assert {each["variant"] for each in case["variants"]} == {"unfused", "waves"}
    assert report["harness"]["workload_files"] == ["bench/total.py"]
    assert report["harness"]["engine"] != report["commit"]


@pytest.mark.long
def test_two_commits_of_a_project_are_compared_by_the_workloads_of_the_newer(measured, waves):
    waves.slow_down(30)
    waves.write("bench/total.py", (waves.folder / "bench/total.py").read_text().replace("4000", "4001"))
    slower = waves.commit("slower")
    report = measured(waves, slower, reference=waves.first)
    (row,) = [row for row in report["comparisons"] if row["metric"] == "time"]
    assert (row["outcome"], row["case"]["params"]) == ("slower", {"n": 4001})


@pytest.mark.long
def test_a_commit_before_pullback_toml_is_measured_by_the_files_that_are_there_now(measured, waves):
    waves.git("rm", "-q", "pullback.toml", "bench/total.py")
    without = waves.commit("nothing says how")
    waves.git("checkout", "-q", waves.first, "--", ".")  # as of somebody who has not committed them
    (case,) = measured(waves, without)["cases"]
    assert (case["case"]["workload"], case["error"]) == ("total", None)


def test_a_commit_that_does_not_build_is_a_failed_build_with_its_log(measured, folder, waves):
    declared = (waves.folder / "pullback.toml").read_text()
    waves.write("pullback.toml", declared.replace("[build]", '[build]\ncommands = ["python build.py"]'))
    waves.write("build.py", "for number in range(30):\n    print('line', number)\nraise SystemExit(3)\n")
    broken = waves.commit("broken")
    steps = []
    with pytest.raises(
        JobFailedError, match="`python build.py` ended with exit status 3(\n  line (1[4-9]|2[0-9])){16}$"
    ) as caught:
        measured(waves, broken, tell=steps.append)
    assert (caught.value.kind, caught.value.retryable) == ("build", False)
    assert f"building {broken[:10]}: `python build.py`" in [step.message for step in steps]
    log = folder.log.read_text()
    assert all(f"line {number}\n" in log for number in range(30))  # more than the message holds


@pytest.mark.parametrize(
    ("file", "said"),
    [("[build]\nimpor = []", "pullback.toml, line 2: .*did you mean 'import'"), (None, "has no pullback.toml")],
)
def test_what_is_wrong_with_pullback_toml_is_a_failed_build(measured, waves, file, said):
    waves.git("rm", "-q", "pullback.toml")
    if file is not None:
        waves.write("pullback.toml", file)
    wrong = waves.commit("wrong")
    with pytest.raises(JobFailedError, match=said) as caught:
        measured(waves, wrong)
    assert caught.value.kind == "build"


def test_a_commit_that_cannot_be_imported_leaves_its_line_and_in_the_log_the_traceback(measured, folder, waves):
    waves.write("src/waves.py", "def broken(:\n")
    sha = waves.commit("broken")
    with pytest.raises(JobFailedError, match=r"SyntaxError: invalid syntax \(src/waves.py, line 1\)"):
        measured(waves, sha)
    assert 'waves.py", line 1\n    def broken(:' in folder.log.read_text()


def test_a_suite_that_does_not_exist_is_a_failed_job_with_the_reason(measured, waves):
    with pytest.raises(JobFailedError, match="nonsense") as caught:
        measured(waves, suite="nonsense")
    assert (caught.value.kind, caught.value.retryable) == ("workload", False)


def test_a_cancelled_job_ends_with_all_its_processes(measured, folder, waves):
    seen = []

    def stops():
        mark = folder.measuring()
        workers = psutil.Process(mark.pid).children(recursive=True) if mark and mark.process() else []
        seen.extend(worker.pid for worker in workers)
        return "cancelled by the service" if seen else None

    with pytest.raises(JobFailedError) as caught:
        measured(waves, stops=stops)
    assert caught.value.kind == "cancelled"
    assert folder.measuring().process() is None
    assert not [pid for pid in seen if _runs(pid)]


def test_a_job_past_its_time_is_ended(measured, folder, waves):
    with pytest.raises(JobFailedError, match="not finished after 0 s") as caught:
        measured(waves, timeout_s=0.3)
    assert caught.value.kind == "timeout"
    assert folder.measuring().process() is None


def test_a_measuring_process_that_is_killed_is_the_machines_fault(measured, folder, waves):
    def kill():
        while not (mark := folder.measuring()):
            time.sleep(0.05)
        psutil.Process(mark.pid).kill()

    threading.Thread(target=kill).start()
    with pytest.raises(JobFailedError, match="signal 9") as caught:
        measured(waves)
    assert (caught.value.kind, caught.value.retryable) == ("infra", True)


def test_the_measured_code_sees_no_secret(measured, folder, waves, monkeypatch, tmp_path):
    monkeypatch.setenv("PULLBACK_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret@host/pullback")
    environments = []

    def look(_):
        processes = [psutil.Process(folder.measuring().pid)]
        for process in processes + processes[0].children(recursive=True):
            with suppress(psutil.Error):  # one that has just ended
                environments.append(process.environ())

    measured(waves, tell=look)
    names = set().union(*environments)
    assert "PATH" in names
    assert not {name for name in names if "TOKEN" in name or "DATABASE" in name}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("b'x' * 100_000", "a line of more than 65536 bytes"),
        ("b'{garbage\\n'", "invalid progress"),
        ("b'[]\\n'", "invalid progress"),
        ("""b'{"phase": "x", "done": 1e9, "total": 1, "message": "", "case": null}\\n'""", "invalid progress"),
        ("b'\\xff\\n'", "invalid progress"),
        ("b'[' * 20_000 + b'\\n'", "invalid progress"),
    ],
)
def test_a_process_that_writes_no_progress_fails_its_job_and_not_the_agent(written, said):
    reading, writing = os.pipe()
    program = f"import os, time; os.write({writing}, {written}); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-I", "-c", program], pass_fds=[writing])
    os.close(writing)
    try:
        with pytest.raises(JobFailedError, match=said) as failed:
            _follow(
                ConfinedProcess(process),
                reading,
                deadline=Deadline(time.monotonic() + 30, 30),
                tell=pytest.fail,
                stops=lambda: None,
            )
        assert failed.value.kind == "workload"
    finally:
        process.kill()
        process.wait()
        os.close(reading)


def test_leftovers_without_a_report_are_said_to_have_failed(folder):
    delivery = settle(folder)
    assert delivery.path == "/api/v1/jobs/7/attempts/1/fail"
    assert [delivery.body[each] for each in ("kind", "retryable", "agent_ended")] == ["infra", True, True]


def test_what_cannot_be_settled_is_put_aside_and_told_to_the_service(folder, tmp_path):
    delivery = put_aside(folder, tmp_path / "aside", OSError("Input/output error"))
    (aside,) = (tmp_path / "aside").iterdir()
    assert not folder.path.exists()
    assert (aside / "attempt.json").exists()
    assert delivery.path == "/api/v1/jobs/7/attempts/1/fail"
    assert f"its leftovers could not be processed and were moved aside ({aside.name})" in delivery.body["message"]
    assert delivery.body["agent_ended"]


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        ({"kind": "build", "message": "no", "retryable": False}, ("build", "no", False, False)),
        # The job may have written it, and killed the agent: one that is tried again counts as a lost agent.
        ({"kind": "infra", "message": "no", "retryable": True}, ("infra", "no", True, True)),
    ],
)
def test_a_failure_that_was_written_before_the_agent_was_killed_is_that_of_the_job(folder, failure, said):
    folder.failure.write_text(json.dumps(failure))
    body = settle(folder).body
    assert tuple(body[each] for each in ("kind", "message", "retryable", "agent_ended")) == said


def test_what_lies_aside_has_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(crash_recovery, "MOST_ASIDE_BYTES", 2**20)
    aside = tmp_path / "aside"
    for number in range(4):
        lease = Lease(job_id=str(number), attempt=1, token="t", heartbeat_s=15.0)  # noqa: S106 - of nobody
        job = JobFolder.create(tmp_path / "jobs", lease, "key")
        (job.work / "file").write_bytes(bytes(400_000 if number < 3 else 2**20))
        put_aside(job, aside, OSError("no"))
        left = {each.name.partition("-")[0] for each in aside.iterdir()}
        assert left == ({"0"}, {"0", "1"}, {"1", "2"}, {"1", "2"})[number]


def test_a_finished_report_of_a_killed_agent_is_delivered(folder):
    folder.report.write_text(json.dumps({"id": KEY}))
    folder.mark_report(sha256(folder.report.read_bytes()).hexdigest())
    delivery = settle(folder)
    assert (delivery.path, delivery.key, delivery.body) == ("/api/v1/jobs/7/attempts/1/report", KEY, {"id": KEY})


def test_processes_of_a_killed_agent_are_ended(folder):
    sleeper = psutil.Popen(["sleep", "60"], start_new_session=True)
    folder.mark_measuring(ProcessMark.of(sleeper.pid))
    settle(folder)
    assert sleeper.wait(5) != 0


def test_a_folder_without_a_lease_has_nothing_to_say(tmp_path):
    assert settle(JobFolder(tmp_path / "half-made")) is None


def test_a_job_is_measured_on_the_agents_device(measured, engine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(
        JobFailedError, match="^--device cuda: (nvidia-ml-py|NVIDIA's driver|CUDA_VISIBLE_DEVICES=) "
    ) as raised:
        measured(engine, cases=("poly9_broadcast*",), device="cuda")
    assert (raised.value.kind, raised.value.retryable) == ("workload", False)
