import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_runners.errors import UsageError
from pullback_runners.suites import SUITES
from pullback_runners.workloads import Case, grid, known_workloads, registry, select_cases
from pullback_service.series.case_identity import label

QUICK = [
    "dense_bias_act[n=32,act=tanh,f4,cpu]",
    "dense_bias_act[n=100,act=tanh,f4,cpu]",
    "mul_restore[m=16,k=32,n=8,f8,cpu]",
    "poly9_broadcast[n=1000,f8,cpu]",
    "touch_large_array[n=100000,form=index,f8,cpu]",
    "touch_large_array[n=100000,form=projection,f8,cpu]",
]


def names(suite, *patterns):
    return [case.name for case in select_cases(suite, patterns)]


def test_the_quick_suite_is_its_headline_when_nothing_is_named():
    assert names("quick") == QUICK


def test_every_workload_has_sizes_in_every_suite_and_is_measured_when_it_is_named():
    for workload in known_workloads():
        for suite in SUITES:
            cases = [case.name for case in workload.cases(suite)]
            assert cases, (
                f"{workload.name} has no sizes for {suite}: add {suite}=grid(…) to its @workload in {workload.file}"
            )
            assert names(suite, workload.name) == cases


def test_a_users_own_workload_is_in_the_headline(monkeypatch):
    monkeypatch.setattr(registry, "_workloads", {each.name: each for each in known_workloads()})

    @registry.workload(wrt="x", quick=grid(n=(1,)))
    def mine(n):
        """A user's own."""

    assert set(names("quick")) == {*QUICK, "mine[n=1,f8,cpu]"}


def test_a_size_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(UsageError, match=r"poly9_broadcast\[n=7,\*.*there are poly9_broadcast\[n=1000,f8,cpu\]$"):
        select_cases("quick", ["poly9_broadcast[n=7,*"])


def test_a_suite_without_sizes_is_answered_with_those_that_have_some(monkeypatch):
    monkeypatch.setattr(registry, "_workloads", {each.name: each for each in known_workloads()})

    @registry.workload(wrt="x", quick=grid(n=(1,)), standard=grid(n=(2,)))
    def loss(n):
        """A user's own."""

    with pytest.raises(UsageError, match=r"^loss has no sizes for the suite full; it has quick, standard$"):
        select_cases("full", ["loss"])


def test_an_unknown_name_is_answered_with_the_workloads_of_the_users_files(monkeypatch):
    monkeypatch.setattr(registry, "_workloads", {each.name: each for each in known_workloads()})

    @registry.workload(wrt="x", quick=grid(n=(1,)))
    def loss(n):
        """A user's own."""

    with pytest.raises(UsageError, match=r"'nosuch\*'; the workloads of your files are loss; `pullback run"):
        select_cases("quick", ["nosuch*"])
    with pytest.raises(UsageError, match=r"'los'; did you mean loss\? "):
        select_cases("quick", ["los"])


def test_a_larger_suite_holds_the_headline_of_the_smaller_one():
    assert set(QUICK) < set(names("standard"))
    assert set(QUICK) < set(names("full"))


@given(st.dictionaries(st.text(max_size=4), st.integers(-99, 99) | st.text('a1,=[]"\\\n\x7fé', max_size=4), max_size=3))
def test_a_case_has_the_name_by_which_the_service_knows_it(params):
    case = Case("w", tuple(params.items()), "f4")
    assert case.name == label("w", params, "f4", "cpu")


def test_a_case_is_asked_for_by_its_name_however_it_reads(monkeypatch):
    monkeypatch.setattr(registry, "_workloads", {each.name: each for each in known_workloads()})

    @registry.workload(wrt="x", quick=grid(n=(1, "1", "1,f8")))
    def mine(n):
        """A user's own."""

    assert names("quick", "mine") == ["mine[n=1,f8,cpu]", 'mine[n="1",f8,cpu]', 'mine[n="1,f8",f8,cpu]']
    for name in names("quick", "mine"):
        assert names("quick", name) == [name]


def test_a_case_is_the_same_after_a_trip_through_its_document():
    for case in select_cases("standard"):
        assert Case.of_document(case.document()) == case


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("mul_restore", QUICK[2:3]),
        ("dense_bias_act[n=100,act=tanh,f4,cpu]", QUICK[1:2]),
        ("dense*f4*", QUICK[:2]),
        ("dense_bias_act[n=???,*]", QUICK[1:2]),
        ("touch*", QUICK[4:]),
    ],
)
def test_patterns_take_brackets_as_they_are(pattern, expected):
    assert names("quick", pattern) == expected


def test_a_case_chosen_twice_is_measured_once():
    assert names("quick", "mul_restore", "mul_r*") == QUICK[2:3]


def test_a_pattern_without_a_case_is_an_error_even_beside_one_that_has_some():
    with pytest.raises(UsageError, match="'nothing'"):
        select_cases("quick", ["mul_restore", "nothing"])


def test_a_grid_is_every_combination():
    assert grid(n=(1, 2), form=("a", "b")) == [
        {"n": 1, "form": "a"},
        {"n": 1, "form": "b"},
        {"n": 2, "form": "a"},
        {"n": 2, "form": "b"},
    ]
