import errno
import os
import time

import pytest

from pullback_runners.agent.errors import PermanentError
from pullback_runners.agent.spool import SENT_KEPT_S, Delivery, Spool


def _delivery(key):
    return Delivery(key=key, path="/api/v1/jobs/1/attempts/1/report", body={"id": key}, lease_token="t")  # noqa: S106


def test_what_was_put_is_read_back_whole_and_in_order(tmp_path):
    spool = Spool(tmp_path)
    deliveries = [_delivery(key) for key in ("b", "a", "c")]
    paths = [spool.put(delivery) for delivery in deliveries]
    assert spool.waiting() == paths
    assert [spool.read(path) for path in Spool(tmp_path).waiting()] == deliveries


def test_a_half_written_file_is_not_waiting(tmp_path):
    spool = Spool(tmp_path)
    (tmp_path / "00000000000000000001-x.partial").write_bytes(b'{"key": "x"')
    assert spool.waiting() == []


def test_nothing_is_left_of_what_a_full_disk_did_not_take(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    spool = Spool(tmp_path)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        spool.put(_delivery("x"))
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []


def test_a_file_that_is_no_delivery_is_a_permanent_error(tmp_path):
    spool = Spool(tmp_path)
    path = tmp_path / "00000000000000000001-x.json"
    path.write_bytes(b'{"key": "x"')
    with pytest.raises(PermanentError, match=path.name):
        spool.read(path)


def test_sent_deliveries_are_kept_for_a_fortnight(tmp_path):
    spool = Spool(tmp_path)
    for key in ("old", "new"):
        spool.mark_sent(spool.put(_delivery(key)))
    assert spool.waiting() == []
    old, _new = sorted((tmp_path / "sent").iterdir())
    long_ago = time.time() - SENT_KEPT_S - 1
    os.utime(old, (long_ago, long_ago))
    assert spool.forget_old() == 1
    assert [path.name.endswith("-new.json") for path in (tmp_path / "sent").iterdir()] == [True]


def test_a_refused_delivery_is_kept_with_its_reason(tmp_path):
    spool = Spool(tmp_path)
    path = spool.put(_delivery("x"))
    spool.mark_refused(path, "the commit is not known")
    assert spool.waiting() == []
    assert (tmp_path / "refused" / path.name).exists()
    reason = (tmp_path / "refused" / path.name).with_suffix(".reason")
    assert reason.read_text() == "the commit is not known\n"
