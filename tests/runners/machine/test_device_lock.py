"""The lock of a device: one holder, who is named, and none once that has ended, however it ended."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from pullback_runners.machine.device_lock import HeldDeviceError, device_lock, lock_folder

UUID = "GPU-11111111-aaaa-4aaa-8aaa-111111111111"
HOLDER = """
import sys
from pullback_runners.machine.device_lock import device_lock
with device_lock(sys.argv[1]):
    print("held", flush=True)
    input()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_LOCKS", str(tmp_path))
    return tmp_path


@pytest.fixture
def holder(folder):
    """Another process that has the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, UUID], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_holder_is_refused_with_the_first_ones_process_command_and_time(holder):
    said = rf"^device {UUID} is held by process {holder.pid} \(\S*python\S* -c .*{UUID}\) since 20\d\d-.*; wait for its end"
    with pytest.raises(HeldDeviceError, match=re.compile(said, re.DOTALL)), device_lock(UUID):
        pytest.fail("two holders")


def test_the_lock_of_a_process_that_was_killed_is_free_and_names_its_next_holder(holder, folder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert str(holder.pid) in (folder / f"pullback-{UUID}.lock").read_text()  # what is written there locks nothing
    with device_lock(UUID):
        with pytest.raises(HeldDeviceError, match=f"is held by process {os.getpid()} "), device_lock(UUID):
            pass
        assert str(holder.pid) not in (folder / f"pullback-{UUID}.lock").read_text()


@pytest.mark.parametrize(
    "written", ["[" * 1_000_000, json.dumps({"pid": 1, "command": "x" * 1_000_000, "since": "now"})]
)
def test_of_what_others_wrote_into_the_file_little_is_read(holder, folder, written):
    (folder / f"pullback-{UUID}.lock").write_text(written)
    with pytest.raises(HeldDeviceError, match="is held by another process; wait"), device_lock(UUID):
        pass


def test_the_holders_name_is_shown_with_marks_for_what_nobody_sees_and_no_longer_than_is_read(holder, folder):
    written = {"pid": 7, "command": "a\x1b]0;b\u202egnp\n\u200bc" + "x" * 10_000, "since": "now"}
    (folder / f"pullback-{UUID}.lock").write_text(json.dumps(written))
    with pytest.raises(HeldDeviceError) as refused, device_lock(UUID):
        pass
    said = str(refused.value)
    assert "held by process 7 (a␛]0;b⟨U+202E⟩gnp ⟨U+200B⟩cxxx" in said
    assert "x…) since now; wait" in said
    assert (len(said) < 800, said.isprintable()) == (True, True)


def test_a_lock_is_given_back_with_its_block_and_devices_have_one_each(folder):
    for _ in range(2):
        with device_lock(UUID), device_lock("MIG-GPU-1/2/0"):
            assert sorted(each.name for each in folder.iterdir()) == [
                f"pullback-{UUID}.lock",
                "pullback-MIG-GPU-1-2-0.lock",
            ]


def test_whoever_only_looks_keeps_nobody_from_it(folder):
    looking = f"""
from pullback_runners.machine.device_lock import device_lock
print("looks", flush=True)
while True:
    with device_lock({UUID!r}):
        pass
    __import__("time").sleep(0.02)
"""
    process = subprocess.Popen([sys.executable, "-c", looking], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "looks\n"
        for _ in range(20):
            with device_lock(UUID):
                pass
    finally:
        process.kill()
        process.communicate()


def test_other_users_may_lock_it_whatever_the_umask(folder):
    before = os.umask(0o077)
    try:
        with device_lock(UUID):
            pass
    finally:
        os.umask(before)
    assert (folder / f"pullback-{UUID}.lock").stat().st_mode & 0o777 == 0o666


def test_a_lock_that_cannot_be_made_is_one_sentence(folder, monkeypatch):
    monkeypatch.setenv("PULLBACK_LOCKS", str(folder / "none"))
    said = r"^the lock .*/none/pullback-GPU-.* cannot be opened \(No such file or directory\); name a folder .* PULLBACK_LOCKS$"
    with pytest.raises(HeldDeviceError, match=said), device_lock(UUID):
        pass
    monkeypatch.delenv("PULLBACK_LOCKS")
    assert lock_folder().is_dir()
