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
        self.shas, self.asked = [], 0

    def tell_log(self, *_):
        pass

    def add_job(self, _project, commit, **_):
        self.shas.append(commit["sha"])
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
        checkout.look()
    assert len(service.shas) == 1
    assert service.asked == 5
