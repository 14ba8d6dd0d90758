"""Steps of builds are told to whoever waits for them."""

import fcntl
import os
import sys
import threading

from pullback_runners.projects import build_steps
from pullback_runners.projects.build_steps import building, environment_of_it, step
from pullback_runners.projects.environments import run_logged
from pullback_runners.projects.folder_cache import kept_folder


class Messages(list):
    """Messages of progress, of which one can wait for so many."""

    def __init__(self):
        super().__init__()
        self.came = threading.Condition()

    def __call__(self, progress):
        assert (progress.phase, progress.done, progress.total) == ("build", 0, 1)
        with self.came:
            self.append(progress.message)
            self.came.notify_all()

    def wait_for(self, count):
        with self.came:
            assert self.came.wait_for(lambda: len(self) >= count, timeout=30)


def test_a_step_is_told_when_it_begins_and_while_it_lasts(monkeypatch):
    monkeypatch.setattr(build_steps, "AGAIN_S", 0.02)
    told = Messages()
    with building("1a2b3c", told), step("`make`"):
        told.wait_for(3)
    assert told[:3] == ["building 1a2b3c: `make`", *["building 1a2b3c: `make` (0 s)"] * 2]
    count = len(told)
    with step("nobody waits for it"):
        pass
    assert len(told) == count


def test_commands_of_a_build_and_of_its_environment_are_steps(tmp_path):
    told = Messages()
    with building("1a2b3c", told):
        run_logged([sys.executable, "-c", ""], tmp_path, "one")
        with environment_of_it():
            run_logged([sys.executable, "-c", ""], tmp_path, "installing requirements.txt")
        run_logged([sys.executable, "-c", ""], tmp_path, "another")
    assert told == [
        "building 1a2b3c: one",
        "making the environment of 1a2b3c: installing requirements.txt",
        "building 1a2b3c: another",
    ]


def test_waiting_for_another_process_is_a_step(tmp_path):
    told, made = Messages(), []
    lock = os.open(tmp_path / "one.lock", os.O_WRONLY | os.O_CREAT, 0o600)  # as another process has it
    fcntl.flock(lock, fcntl.LOCK_EX)
    ends = threading.Thread(target=lambda: (told.wait_for(1), os.close(lock)))
    ends.start()
    with building("1a2b3c", told):
        kept_folder(tmp_path / "one", made.append, 1000)
    ends.join()
    assert told == ["building 1a2b3c: waiting for another process that makes the same"]
    assert made == [tmp_path / "one"]
