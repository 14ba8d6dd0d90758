"""Spikes, drift and noisier stretches in words."""

from math import log

import pytest

from pullback_dashboards.case.irregularities import line_of
from pullback_service.incidents.irregularities import Irregularity

SHAS = {1: "a" * 40, 2: "b" * 40}


@pytest.mark.parametrize(
    ("found", "metric", "sign", "words"),
    [
        (
            ("spike", 1, 2, 2, log(1.18)),
            "time",
            "◇",
            "two results stood out at aaaaaaa: +18.0 % up to bbbbbbb, and back",
        ),
        (("spike", 1, 1, 1, log(0.9)), "time", "◇", "two results stood out at aaaaaaa: −10.0 %, and back"),
        (
            ("drift", 1, 2, 40, log(1.06)),
            "time",
            "↗",
            "slower little by little over 40 commits since aaaaaaa: +6.0 % in all",
        ),
        (
            ("drift", 1, 2, 9, log(0.9)),
            "time",
            "↘",
            "faster little by little over 9 commits since aaaaaaa: −10.0 % in all",
        ),
        (
            ("drift", 1, 2, 9, log(1.1)),
            "throughput",
            "↗",
            "higher little by little over 9 commits since aaaaaaa: +10.0 % in all",
        ),
        (("noisier", 1, 2, 9, log(2.1)), "time", "≈", "results vary more since aaaaaaa: 2.1 times as much"),
        (("noisier", 1, 2, 9, log(1e6)), "time", "≈", "results vary more since aaaaaaa: they hardly varied before"),
    ],
)
def test_each_is_a_sentence_with_its_commit(found, metric, sign, words):
    line = line_of("demo", "fused", metric, Irregularity(*found), SHAS)
    assert (line.sign, f"{line.words} {line.short}: {line.amount}") == (sign, words)
    assert line.commit_href == f"/projects/demo/commits/{'a' * 40}"
