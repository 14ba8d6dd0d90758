"""Isolation where no other user and no namespace is needed."""

import os
import sys
from pathlib import Path

import pytest

from pullback_runners.sandbox.bubblewrap import SandboxView
from pullback_runners.sandbox.isolation import Isolation


def _descriptors():
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are wanted


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
def test_a_process_that_cannot_be_started_leaves_no_descriptor_open(tmp_path):
    before = _descriptors()
    with pytest.raises(FileNotFoundError):
        Isolation().start([str(tmp_path / "no-such-program")], SandboxView(tmp_path), environment={})
    assert _descriptors() == before


def test_a_process_that_is_started_leaves_none_open_when_it_has_ended(tmp_path):
    before = _descriptors() if Path("/proc/self/fd").exists() else set()
    confined = Isolation().start([sys.executable, "-I", "-c", ""], SandboxView(tmp_path), environment={})
    confined.end()
    assert (_descriptors() if before else set()) == before


def test_what_forks_wrote_is_in_a_cache_of_its_own(tmp_path):
    isolation = Isolation("sandbox")
    stores = [
        isolation.cache(tmp_path, project, trusted=trusted) for project in ("one", "other") for trusted in (True, False)
    ]
    folders = {store.roots[-1] for store in stores}
    assert len(folders) == 4
    assert all(folder.stat().st_mode & 0o027 == 0 for folder in folders)
