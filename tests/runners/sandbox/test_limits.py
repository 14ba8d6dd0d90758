import os

import pytest

from pullback_runners.sandbox import limits
from pullback_runners.sandbox.limits import GIB, Limits, Watch


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ((6 * GIB, 10**6), (1.1 * GIB, 10**6), None),
        ((6 * GIB, 10**6), (0.9 * GIB, 10**6), "the disk ran full: 0.9 GiB were left"),
        ((6 * GIB, 10**6), (6 * GIB, 9_999), "the disk ran full: room for 9999 files was left"),
        ((GIB, 1000), (0.6 * GIB, 600), None),
        ((GIB, 1000), (0.4 * GIB, 600), "the disk ran full: 0.4 GiB were left"),
        ((6 * GIB, 0), (6 * GIB, 0), None),  # file systems without a table of files say 0
    ],
)
def test_a_job_is_ended_before_the_disk_is_full(tmp_path, monkeypatch, before, now, said):
    monkeypatch.setattr(limits, "_free", lambda _: before)
    watch = Watch(Limits(), os.getpid(), tmp_path)
    monkeypatch.setattr(limits, "_free", lambda _: now)
    assert watch.trouble() == said
