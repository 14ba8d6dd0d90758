from pullback_runners.agent import disk_space
from pullback_runners.agent.spool import Delivery, Spool


def test_a_disk_with_room_lacks_nothing(tmp_path):
    assert disk_space.lack_of_room(tmp_path, Spool(tmp_path / "spool"), least_free_bytes=1) is None


def test_a_short_disk_is_named_with_a_remedy(tmp_path):
    reason = disk_space.lack_of_room(tmp_path, Spool(tmp_path / "spool"), least_free_bytes=1e18)
    assert str(tmp_path) in reason
    assert "--data" in reason


def test_a_full_spool_stops_claiming(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_space, "LARGEST_SPOOL_BYTES", 10)
    spool = Spool(tmp_path / "spool")
    spool.put(Delivery("k", "/p", {}, None))
    assert "delivered first" in disk_space.lack_of_room(tmp_path, spool, least_free_bytes=1)
