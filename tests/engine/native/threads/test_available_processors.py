import os

import pytest

from pullback.backends.native.threads import available_processors


@pytest.fixture(autouse=True)
def nobody_set_anything(monkeypatch):
    for name in available_processors.SHARED_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(available_processors, "_GROUPS_OF_PROCESS", available_processors.Path("/nowhere"))


@pytest.fixture
def processors(monkeypatch):
    monkeypatch.setattr(available_processors, "_processors", lambda: 8)


def test_without_limits_it_is_the_processors_that_the_process_may_run_on():
    expected = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert available_processors.fixed_limit() == expected


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"])
def test_limits_of_other_libraries_count_when_they_are_lower(name, processors, monkeypatch):
    monkeypatch.setenv(name, "3,2")
    assert available_processors.fixed_limit() == 3
    monkeypatch.setenv(name, "100")
    assert available_processors.fixed_limit() == 8
    monkeypatch.setenv(name, "nonsense")
    assert available_processors.fixed_limit() == 8


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)


@pytest.fixture
def groups(tmp_path):
    """Control groups of a process that is in /a/b of both versions."""
    of_process = tmp_path / "cgroup"
    of_process.write_text("3:cpuset:/x\n2:cpu,cpuacct:/a/b\n0::/a/b\nnonsense\n")
    root = tmp_path / "fs"
    root.mkdir()
    return of_process, root


def test_no_quota_is_none(groups, tmp_path):
    assert available_processors.processor_quota(*groups) is None
    assert available_processors.processor_quota(tmp_path / "absent", tmp_path) is None
    write(groups[1] / "a" / "b", cpu__max="max 100000\n")
    write(groups[1] / "cpu" / "a", **{"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"})
    assert available_processors.processor_quota(*groups) is None


def test_the_tightest_quota_of_the_groups_around_counts(groups):
    write(groups[1] / "a" / "b", cpu__max="400000 100000\n")
    assert available_processors.processor_quota(*groups) == 4
    write(groups[1] / "a", cpu__max="150000 100000\n")
    assert available_processors.processor_quota(*groups) == 1.5


def test_the_root_counts_where_the_path_is_not_there_as_in_a_container(groups):
    write(groups[1], cpu__max="250000 100000\n")
    assert available_processors.processor_quota(*groups) == 2.5


def test_quotas_of_the_first_version_count_too(groups):
    write(groups[1] / "cpu" / "a", **{"cpu.cfs_quota_us": "300000\n", "cpu.cfs_period_us": "100000\n"})
    assert available_processors.processor_quota(*groups) == 3


@pytest.mark.parametrize("content", ["", "1", "1 0", "x y", "1 2 3"])
def test_what_is_no_quota_is_passed_by(content, groups):
    write(groups[1] / "a", cpu__max=content)
    assert available_processors.processor_quota(*groups) is None


@pytest.mark.parametrize(("quota", "expected"), [("250000", 2), ("50000", 1), ("900000", 8)])
def test_whole_processors_of_the_quota_count_and_one_at_least(quota, expected, groups, processors, monkeypatch):
    write(groups[1], cpu__max=f"{quota} 100000")
    monkeypatch.setattr(available_processors, "_GROUPS_OF_PROCESS", groups[0])
    monkeypatch.setattr(available_processors, "_GROUPS", groups[1])
    assert available_processors.fixed_limit() == expected
