"""pytest-benchmark's files."""

import json
from statistics import median

import pytest

from pullback_service.errors import InvalidInputError


def test_parameters_come_from_params_and_not_from_the_name(read, sample):
    found = read("pytest-benchmark/parametrized.json", commit=None)
    said = {
        each["name"]: each["stats"]["median"]
        for each in json.loads(sample("pytest-benchmark/parametrized.json"))["benchmarks"]
    }
    assert found.values() == pytest.approx(
        {
            "test_maths.py::test_apply[kind=sin,n=10]": said["test_apply[sin-10]"],
            "test_maths.py::test_apply[kind=sin,n=100]": said["test_apply[sin-100]"],
            "test_maths.py::test_apply[kind=cos,n=10]": said["test_apply[cos-10]"],
            "test_maths.py::test_apply[kind=cos,n=100]": said["test_apply[cos-100]"],
            "test_maths.py::test_sort": said["test_sort"],
            "test_maths.py::test_object": said["test_object"],
        }
    )


def test_rounds_are_of_one_process(read, sample):
    found = read("pytest-benchmark/with-data.json", commit=None)
    data = next(
        each["stats"]["data"]
        for each in json.loads(sample("pytest-benchmark/with-data.json"))["benchmarks"]
        if each["name"] == "test_sort"
    )
    point = found.points["test_maths.py::test_sort", "external", "time"]
    assert point.process_values == pytest.approx([median(data)])
    assert point.method == "median of rounds"


def test_the_commit_comes_from_the_file_and_the_query_must_agree(read, sample):
    told = json.loads(sample("pytest-benchmark/parametrized.json"))["commit_info"]
    document = read("pytest-benchmark/parametrized.json", commit=None).document
    assert document.commit.sha == told["id"]
    assert document.commit.branch == told["branch"]
    assert document.commit.authored_at is not None
    with pytest.raises(InvalidInputError, match=r"query\.commit is a{40}, but the file says"):
        read("pytest-benchmark/parametrized.json")


def test_a_dirty_tree_is_refused_unless_it_is_allowed_and_then_busy(read):
    with pytest.raises(InvalidInputError, match="allow_dirty=true"):
        read("pytest-benchmark/dirty.json", commit=None)
    document = read("pytest-benchmark/dirty.json", commit=None, allow_dirty=True).document
    assert document.commit.dirty
    assert document.harness.quality == "busy"


def test_tests_whose_parameters_are_equal_keep_their_brackets(read, sample):
    content = json.loads(sample("pytest-benchmark/parametrized.json"))
    content["benchmarks"] = content["benchmarks"][:2]
    for each in content["benchmarks"]:
        each["params"] = {"x": "<object>"}
    labels = read(json.dumps(content).encode(), commit=None).values().keys()
    assert labels == {"test_maths.py::test_apply[sin-10][x=<object>]", "test_maths.py::test_apply[sin-100][x=<object>]"}
