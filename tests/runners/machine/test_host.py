"""A computer has one host id; a copy of its disk draws another."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from pullback_runners.machine import describe_machine, host
from pullback_runners.machine.host import host_id, kept_id

HERE = {"hardware": ["02:00:00:00:00:01", "4c4c4544"], "system": ["b08dfa6083e7567a1921a715000001fb"]}


@pytest.fixture(autouse=True)
def lasting(monkeypatch, tmp_path):
    """A computer whose files last, wherever the tests run, and a user's folder of its own."""
    for name in ("CI", "KUBERNETES_SERVICE_HOST", host.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(host, "_is_passing", lambda: False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_a_host_is_drawn_once_and_kept(tmp_path):
    file = tmp_path / "a" / "host.json"
    assert kept_id(file, HERE) == kept_id(file, HERE)
    assert {each.name for each in file.parent.iterdir()} == {"host.json", "host.json.lock"}


def test_two_computers_draw_two(tmp_path):
    assert kept_id(tmp_path / "a.json", HERE) != kept_id(tmp_path / "b.json", HERE)


@pytest.mark.parametrize(
    "there",
    [
        {"hardware": ["02:00:00:00:00:02"], "system": HERE["system"]},
        {"hardware": HERE["hardware"], "system": ["another"]},
    ],
)
def test_a_copy_of_the_disk_draws_its_own_and_leaves_the_first_alone(tmp_path, there):
    first = kept_id(tmp_path / "host.json", HERE)
    copied = tmp_path / "copy.json"
    copied.write_text((tmp_path / "host.json").read_text(encoding="utf-8"), encoding="utf-8")
    second = kept_id(copied, there)
    assert second != first
    assert kept_id(copied, there) == second
    assert kept_id(tmp_path / "host.json", HERE) == first


@pytest.mark.parametrize(
    "later",
    [
        {"hardware": ["4c4c4544", "02:00:00:00:00:99"], "system": HERE["system"]},  # another network card
        {"hardware": [], "system": HERE["system"]},  # asked by somebody who may not read it
        {"hardware": HERE["hardware"], "system": []},
    ],
)
def test_a_computer_that_is_mended_stays_what_it_is(tmp_path, later):
    file = tmp_path / "host.json"
    assert kept_id(file, HERE) == kept_id(file, later)


def test_nothing_of_the_computer_can_be_read_from_the_file_or_the_report(tmp_path):
    kept_id(tmp_path / "host.json", HERE)
    text = (tmp_path / "host.json").read_text(encoding="utf-8") + json.dumps(describe_machine())
    assert not any(each in text for ids in HERE.values() for each in ids)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"id": "x"}', '{"id": "x", "hardware": 1, "system": []}'])
def test_half_of_a_file_is_written_anew(tmp_path, content):
    file = tmp_path / "host.json"
    file.write_text(content, encoding="utf-8")
    drawn = kept_id(file, HERE)
    assert len(drawn) == 16
    assert kept_id(file, HERE) == drawn


@pytest.mark.parametrize("content", [None, "{"])
def test_threads_that_draw_at_once_agree(tmp_path, content):
    for again in range(20):
        file = tmp_path / str(again) / "host.json"
        if content is not None:
            file.parent.mkdir()
            file.write_text(content, encoding="utf-8")
        begin = Barrier(8)

        def draw(_place, file=file, begin=begin):
            begin.wait()
            return kept_id(file, HERE)

        with ThreadPoolExecutor(8) as pool:
            assert len({*pool.map(draw, range(8))}) == 1


def test_the_users_folder_holds_it_for_agents_and_runs(tmp_path):
    assert host_id() == host_id(tmp_path / "agent") is not None
    assert (tmp_path / "data" / "pullback" / "host.json").is_file()
    assert not (tmp_path / "agent").exists()


def test_where_files_are_gone_afterwards_only_an_agent_has_one(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "_is_passing", lambda: True)
    assert host_id() is None
    assert host_id(tmp_path / "agent") == host_id(tmp_path / "agent") is not None
    assert not (tmp_path / "data").exists()


def test_a_folder_that_cannot_be_written_is_none(monkeypatch, tmp_path):
    (tmp_path / "data").write_text("no folder", encoding="utf-8")
    assert host_id() is None
    assert host_id(tmp_path / "agent") is not None


@pytest.mark.parametrize(("said", "known"), [("runner-3", "runner-3"), ("", None), (" ", None)])
def test_the_variable_says_it_instead(monkeypatch, tmp_path, said, known):
    monkeypatch.setenv(host.VARIABLE, said)
    assert host_id(tmp_path) == known
    assert describe_machine()["host"] == known
