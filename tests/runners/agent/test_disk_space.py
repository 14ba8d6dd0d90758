from types import SimpleNamespace

import pytest

from pullback_runners.agent import disk_space
from pullback_runners.agent.spool import Delivery, Spool


def test_a_disk_with_room_lacks_nothing(tmp_path):
    assert disk_space.lack_of_room(tmp_path, Spool(tmp_path / "spool"), least_free_bytes=1) is None


def test_a_short_disk_is_named_with_a_remedy(tmp_path):
    reason = disk_space.lack_of_room(tmp_path, Spool(tmp_path / "spool"), least_free_bytes=1e18)
    assert str(tmp_path) in reason
    assert "--data" in reason


@pytest.mark.parametrize(("files", "is_short"), [((10**6, 49_999), True), ((10**6, 50_000), False), ((0, 0), False)])
def test_a_disk_without_room_for_files_is_named_with_a_remedy(tmp_path, monkeypatch, files, is_short):
    about = SimpleNamespace(f_bavail=10, f_frsize=4096, f_files=files[0], f_favail=files[1])
    spool = Spool(tmp_path / "spool")
    monkeypatch.setattr(disk_space.os, "statvfs", lambda _: about)
    reason = disk_space.lack_of_room(tmp_path, spool, least_free_bytes=1)
    said = f"49999 more files fit on the disk of {tmp_path} and 50000 are wanted; remove some or give --data on another disk"
    assert reason == (said if is_short else None)


def test_a_full_spool_stops_claiming(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_space, "LARGEST_SPOOL_BYTES", 10)
    spool = Spool(tmp_path / "spool")
    spool.put(Delivery("k", "/p", {}, None))
    assert "delivered first" in disk_space.lack_of_room(tmp_path, spool, least_free_bytes=1)
