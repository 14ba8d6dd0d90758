"""The jobs that `up` follows, at a service that counts what it is asked."""

import subprocess
import time
from types import SimpleNamespace

import pytest

from pullback_cli.supervision.first_jobs import MeasuredCheckout
from pullback_runners.projects.configuration import Build, ProjectFile


class Service:
    """Has a job for each commit, which is being measured."""

    def __init__(self):
        self.shas, self.asked, self.priorities = [], 0, {}

    def tell_log(self, *_):
        pass

    def add_job(self, _project, commit, *, priority, **_):
        self.shas.append(commit["sha"])
        self.priorities[commit["title"]] = priority
        return SimpleNamespace(id=len(self.shas), state="running", history=[])

    def job(self, number):
        self.asked += 1
        return SimpleNamespace(id=number, state="running", history=[])


@pytest.fixture
def project(tmp_path):
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    (tmp_path / "waves.py").write_text("")
    identity = ["-c", "user.name=A", "-c", "user.email=a@a.test"]
    for arguments in (["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *identity, "-C", tmp_path, *arguments], check=True)
    return ProjectFile(tmp_path, build=Build(path=("waves.py",)))


def test_what_is_measured_is_not_asked_for_more_often_than_an_agent_tells_of_it(project, monkeypatch):
    service, now = Service(), [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    checkout = MeasuredCheckout(service, project, "quick")
    for _ in range(20):  # ten seconds of `up`
        now[0] += 0.5
        checkout.poll()
    assert len(service.shas) == 1
    assert service.asked == 5


def test_what_differs_is_measured_before_a_head_with_equal_code_and_a_fresh_commit_before_all(project, monkeypatch):
    def commit(name, text):
        (project.top / name).write_text(text)
        identity = ["-c", "user.name=A", "-c", "user.email=a@a.test"]
        for arguments in (["add", "-A"], ["commit", "-qm", f"{name}: {text}"]):
            subprocess.run(["git", *identity, "-C", project.top, *arguments], check=True)

    commit("waves.py", "1")
    commit("README", "words")
    service, now = Service(), [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    checkout = MeasuredCheckout(service, project, "quick")
    by_priority = sorted(service.priorities, key=lambda title: -service.priorities[title])
    assert by_priority == ["waves.py: 1", "first", "README: words"]
    assert {job.commit["title"] for job in checkout.jobs} == set(by_priority)
    commit("README", "fresh words")
    for _ in range(4):
        now[0] += 10
        checkout.poll()
    assert service.priorities["README: fresh words"] > service.priorities["first"]
