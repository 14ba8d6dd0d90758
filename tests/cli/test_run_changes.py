"""Changes between commits that were measured one after another."""

import subprocess
import sys

import pytest

from pullback_cli.run_changes import changes_between, lines_of


def _report(sha, *variants, quality="clean", subject=None):
    """A report of one case, whose variants are by name either metrics or the message of a failure."""
    case = {"workload": "total", "params": {"n": 4}, "dtype": "f8", "device": "cpu"}
    described = []
    for name, measured in variants:
        failed = isinstance(measured, str)
        described.append(
            {
                "variant": name,
                "error": {"kind": "raised", "message": measured} if failed else None,
                "metrics": {} if failed else measured,
                "program_hash": None,
                "digests": {"workload": "w", "subject": subject or sha, "code": None},
            }
        )
    return {
        "commit": {"sha": sha * 40},
        "harness": {"quality": quality, "version": "0.1.0"},
        "cases": [{"case": case, "baseline": None, "variants": described, "paired": []}],
    }


def _counted(count, **more):
    return {"array_bytes": {"unit": "B", "value": count, "method": "nep49", "differs": False, **more}}


def _timed(*processes):
    return {"time": {"unit": "s", "clock": "cpu", "processes": list(processes)}}


def _lines(*reports):
    return list(lines_of(changes_between(reports)))


def test_each_commit_is_held_against_the_one_before_it():
    reports = [_report(sha, ("waves", _counted(count))) for sha, count in (("a", 100), ("b", 300), ("c", 300))]
    worse, same = _lines(*reports)
    assert worse == (
        "bbbbbbbbbb against aaaaaaaaaa: 1 worse of 1 series (total[n=4,f8,cpu] waves array bytes: more, +200.0 %)"
    )
    assert same == "cccccccccc against bbbbbbbbbb: no change found in 1 series"


def test_commits_that_changed_nothing_are_one_line():
    reports = [_report(sha, ("waves", _counted(100) | _timed(1.0, 1.01, 1.02))) for sha in "abc"]
    assert _lines(*reports) == ["aaaaaaaaaa to cccccccccc: no change found in 2 series of 3 commits"]
    assert _lines(reports[0]) == _lines() == []


def test_what_does_not_compare_is_not_told_as_unchanged():
    both = [_report(sha, ("waves", _counted(1)), ("tides", _counted(1))) for sha in "ab"]
    assert _lines(*both, _report("c", ("waves", _counted(1)))) == [
        "bbbbbbbbbb against aaaaaaaaaa: no change found in 2 series",
        "cccccccccc against bbbbbbbbbb: no change found in 2 series, 1 not comparable",
    ]


def test_times_of_two_moments_are_likely_at_most_and_of_equal_code_nothing():
    slower = [_report("a", ("waves", _timed(1.0, 1.01, 1.02))), _report("b", ("waves", _timed(1.5, 1.51, 1.52)))]
    assert _lines(*slower) == [
        "bbbbbbbbbb against aaaaaaaaaa: 1 likely worse of 1 series (total[n=4,f8,cpu] waves time: likely slower, +49.5 %)"
    ]
    equal = [_report(sha, ("waves", _timed(time)), subject="same") for sha, time in (("a", 1.0), ("b", 2.0))]
    assert _lines(*equal) == ["aaaaaaaaaa to bbbbbbbbbb: no change found in 1 series of 2 commits"]


def test_times_beside_the_one_that_decides_accuse_nobody():
    beside = [{"host_time": {"unit": "s", "method": "wall", "processes": [took_s] * 3}} for took_s in (1.0, 2.0)]
    reports = [_report(sha, ("torch", _timed(1.0, 1.01, 1.02) | each)) for sha, each in zip("ab", beside, strict=True)]
    assert _lines(*reports) == ["aaaaaaaaaa to bbbbbbbbbb: no change found in 1 series of 2 commits"]


def test_counts_that_differ_from_call_to_call_accuse_nobody():
    varying = _counted(300, differs=True, range=[90, 300])
    assert "no change found" in _lines(_report("a", ("waves", _counted(100))), _report("b", ("waves", varying)))[0]
    apart = _counted(300, differs=True, range=[290, 300])
    assert "1 worse" in _lines(_report("a", ("waves", _counted(100))), _report("b", ("waves", apart)))[0]


def test_a_variant_that_fails_from_a_commit_on_is_worse_once():
    both = _counted(1) | {"array_allocs": {"unit": "1", "value": 1, "method": "nep49", "differs": False}}
    reports = [_report("a", ("waves", both)), *(_report(sha, ("waves", "no such thing")) for sha in "bc")]
    assert _lines(*reports) == [
        "bbbbbbbbbb against aaaaaaaaaa: 1 failed of 2 series (total[n=4,f8,cpu] waves: failed)",
        "cccccccccc against bbbbbbbbbb: no change found in 0 series",
    ]


@pytest.mark.parametrize("package", ["sqlalchemy", "fastapi"])
def test_judging_needs_no_package_of_the_service(package):
    program = f"import sys; sys.modules[{package!r}] = None; import pullback_cli.run_changes"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
