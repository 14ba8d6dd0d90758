"""hyperfine's files."""

import json

import pytest


def test_every_run_is_a_process_and_parameters_leave_the_name(read, sample):
    found = read("hyperfine/parameters.json")
    first = json.loads(sample("hyperfine/parameters.json"))["results"][0]
    point = found.points["sleep {n}[n=0.01]", "external", "time"]
    assert point.process_values == pytest.approx(first["times"])
    assert found.values().keys() == {"sleep {n}[n=0.01]", "sleep {n}[n=0.02]", "true[n=0.01]", "true[n=0.02]"}
    assert found.values("user_time")["sleep {n}[n=0.01]"] == pytest.approx(first["user"])


def test_exit_codes_are_said(read):
    assert "`false` exited 3 times with a status other than 0" in read("hyperfine/failing.json").report.notes


def test_memory_is_a_size_for_each_run_and_null_exit_codes_are_no_failure(read):
    body = json.dumps(
        {
            "results": [
                {
                    "command": "x",
                    "mean": 1.0,
                    "times": [1.0, 1.1],
                    "memory_usage_byte": [2048000, 2052096],
                    "exit_codes": [0, None],
                }
            ]
        }
    ).encode()
    found = read(body)
    assert found.points["x", "external", "max_rss"].process_values == [2048000, 2052096]
    assert found.report.notes == ()
