"""Labels of agents against what jobs require: the device that is meant, the sandbox that strangers need."""

import pytest

from pullback_service.jobs.labels import contains, contains_strangers, device_of, place_of, suits


@pytest.mark.parametrize(
    ("labels", "contained"),
    [
        ({"isolation": "sandbox"}, True),
        ({"danger": "unsandboxed"}, True),
        ({"isolation": "none", "danger": "unsandboxed"}, True),
        ({}, False),
        ({"isolation": "user"}, False),
        ({"isolation": "none"}, False),
        ({"danger": True}, False),
        ({"sandbox": True}, False),
    ],
)
def test_strangers_are_contained_by_a_sandbox_or_by_the_word_of_the_operator(labels, contained):
    assert contains_strangers(labels) is contained


@pytest.mark.parametrize(
    ("labels", "requires", "suited"),
    [
        ({}, {}, True),
        ({}, {"device": "cpu"}, True),
        ({"device": "cpu"}, {}, True),
        ({"device": "cuda"}, {}, False),
        ({}, {"device": "cuda"}, False),
        ({"device": "cuda", "gpu": "h200"}, {"device": "cuda"}, True),
        ({"gpu": "h200"}, {"gpu": "other"}, False),
    ],
)
def test_who_names_no_device_means_the_cpu(labels, requires, suited):
    assert suits(labels, requires) is suited


def test_a_device_is_named_with_its_machine_unless_it_is_the_cpu():
    assert (device_of({}), device_of({"device": "cuda"})) == ("cpu", "cuda")
    assert [place_of("box", device) for device in (None, "cpu", "cuda")] == ["box", "box", "cuda of box"]


@pytest.mark.parametrize(
    ("whole", "part", "contained"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, False),
        ({"a": [1, 2, 3]}, {"a": [3, 1]}, True),
        ({"a": [1, 2]}, {"a": [3]}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": None}, {"b": None}, False),
        ({"a": 1}, {"a": {}}, False),
    ],
)
def test_one_value_contains_another_as_postgres_has_it(whole, part, contained):
    assert contains(whole, part) is contained
