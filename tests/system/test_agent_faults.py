"""Agents that are killed at a system call, whose disk fills, line is cut, or clock jumps: nothing acknowledged is lost or doubled."""

import json

import pytest
from benchmarks.faults.__main__ import main

pytestmark = pytest.mark.system


def test_faults_of_every_kind_lose_and_double_nothing(tmp_path, capsys):
    record = tmp_path / "record.json"
    assert main(["--faults", "12", "--minutes", "5", "--agents", "2", "--json", str(record)]) == 0, (
        capsys.readouterr().out
    )
    found = json.loads(record.read_text())
    assert found["next"] == 12
    assert found["wrong"] == []
    assert {kind: found["counts"][kind] for kind in ("kill", "full", "cut", "clock")} == {
        "kill": 6,
        "full": 2,
        "cut": 2,
        "clock": 2,
    }
    assert found["counts"]["kill: ended by it"] > 0
    assert found["counts"]["acknowledged"] >= 12
