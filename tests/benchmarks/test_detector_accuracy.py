"""The counts that must not become worse, and the reader of real series."""

import gzip

import numpy as np
import pytest
from benchmarks.detector_accuracy import __main__ as program
from benchmarks.detector_accuracy import quick
from benchmarks.detector_accuracy.alarm_counts import PULLBACK, AlarmCounts, Cell, count, share
from benchmarks.detector_accuracy.nightly import read, shifts
from benchmarks.detector_accuracy.nightly_commits import accusations
from benchmarks.detector_accuracy.rivals import bencher_t, conbench, perfherder, rustc_perf


@pytest.mark.long(most_s=3600)
def test_a_few_series_of_each_kind_are_told_as_they_should_be(capsys):
    assert program.main(["--quick"]) == 0, capsys.readouterr().out


def test_a_few_series_are_told_as_they_should_be():
    """A part of `--quick`, which is a long test: what a slip in the detector would break, within seconds."""

    def counted(noise, step, *, online=False):
        return count(Cell(PULLBACK, noise, step, online, quick.SEED), range(4))

    assert counted("iid", 0.0).alarms == counted("t3", 0.0, online=True).alarms == 0
    assert counted("iid", 0.05).found == 4
    assert counted("AR(1) .5", 0.05, online=True).delay(0.5) <= 3
    for name in ("ratios", "fixed offline", "counts", "back and forth"):
        assert share(name, quick.SEED, range(3)) == 3, name


def test_the_median_delay_counts_series_in_which_nothing_was_told():
    counted = AlarmCounts(series=4, alarms=0, found=0, further=0, delays=(3, 1))
    assert (counted.delay(0.25), counted.delay(0.5)) == (3, float("inf"))


def test_other_tools_rules_see_a_large_step():
    values = 100 + np.random.default_rng(0).normal(size=150)
    values[100:] *= 1.2
    for rule in (perfherder, conbench, bencher_t, rustc_perf):
        assert 100 in rule(values)


def test_stretches_are_the_days_of_the_commits_that_stayed_longest(tmp_path):
    rng = np.random.default_rng(0)
    days = [
        (f"2025-01-{day:02d}", commit) for commit, first in (("a", 1), ("b", 13)) for day in range(first, first + 12)
    ]
    days += [("2025-02-01", "c"), ("2025-02-02", "d")]
    (tmp_path / "commits.csv").write_text("date,commit\n" + "".join(f"{date},{commit}\n" for date, commit in days))
    with gzip.open(tmp_path / "series.csv.gz", "wt") as file:
        file.write("eval,tool,workload,part,date,seconds\n")
        for date, _ in days:
            file.write(f"gmm,t,1,derivative,{date},{np.exp(0.01 * rng.normal())}\n")
    stretches = read(tmp_path)
    assert [len(stretch.values) for stretch in stretches] == [12, 12]
    assert shifts(stretches) == set()


def test_a_commit_that_stayed_is_not_accused_of_what_moved_while_it_did(tmp_path):
    rng = np.random.default_rng(0)
    days = [(f"2025-01-{day:02d}", "stayed" if 10 <= day <= 21 else f"on {day}") for day in range(1, 32)]
    (tmp_path / "commits.csv").write_text("date,commit\n" + "".join(f"{date},{commit}\n" for date, commit in days))
    with gzip.open(tmp_path / "series.csv.gz", "wt") as file:
        file.write("eval,tool,workload,part,date,seconds\n")
        for number, (date, _) in enumerate(days):
            file.write(f"gmm,t,1,derivative,{date},{np.exp(0.01 * rng.normal() + 0.2 * (number >= 15))}\n")
    series, by_readings, by_reports = accusations(tmp_path)
    assert (series, by_readings.suspicions, by_reports) == (1, 1, (0, 0, 0))


def test_half_of_the_seeds_is_for_judging():
    assert program.SEEDS["develop"] != program.SEEDS["judged"]


@pytest.mark.parametrize("mark", program.MARKS)
def test_the_page_has_a_place_for_the_tables(mark):
    assert program.PAGE.read_text().count(mark) == 1
