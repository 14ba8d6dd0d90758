"""Agents that are killed at a system call, whose disk fills, line is cut, or clock jumps: nothing acknowledged is lost or doubled."""

import json

import pytest
from benchmarks.faults.__main__ import KINDS, main

pytestmark = pytest.mark.system


@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.long)])
def test_faults_of_every_kind_lose_and_double_nothing(tmp_path, capsys, rounds):
    record, number = tmp_path / "record.json", rounds * len(KINDS)
    assert main(["--faults", str(number), "--minutes", "5", "--agents", "2", "--json", str(record)]) == 0, (
        capsys.readouterr().out
    )
    found = json.loads(record.read_text())
    assert found["next"] == number
    assert found["wrong"] == []
    assert {kind: found["counts"][kind] for kind in ("kill", "full", "cut", "clock")} == {
        "kill": 3 * rounds,
        "full": rounds,
        "cut": rounds,
        "clock": rounds,
    }
    assert found["counts"]["kill: ended by it"] > 0
    assert found["counts"]["acknowledged"] >= number
