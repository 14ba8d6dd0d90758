import pytest

from pullback.backends.native.linking import load, machine_choices


@pytest.fixture
def amount(monkeypatch):
    """What is chosen: a number that a test changes."""
    current = {"amount": 3}
    monkeypatch.setattr(machine_choices, "_finders", {})
    machine_choices.provide("amount", lambda argument: str(current["amount"] * int(argument)))
    return current


@pytest.fixture
def written(adding):
    """A program whose text depends on the choice, and how often it was written."""
    count = []

    def write():
        count.append(1)
        return adding(machine_choices.chosen("amount", "2"))

    return write, count


def test_an_object_is_used_while_the_same_is_chosen(cache, amount, written, call):
    write, count = written
    assert call(load(write, key="adding"), "add", 1) == 7
    assert load(write, key="adding").is_from_cache
    assert len(count) == 1


def test_an_object_made_under_another_choice_is_replaced(cache, amount, written, call):
    write, _ = written
    load(write, key="adding")
    amount["amount"] = 5
    again = load(write, key="adding")
    assert not again.is_from_cache
    assert call(again, "add", 1) == 11
    assert load(write, key="adding").is_from_cache
    assert len(list(cache.glob("*.object"))) == 1


def test_an_object_of_a_choice_that_nobody_here_knows_is_not_used(cache, amount, written, monkeypatch):
    write, _ = written
    load(write, key="adding")
    monkeypatch.setattr(machine_choices, "_finders", {})
    assert not machine_choices.hold((("amount", "2", "6"),))


def test_another_choice_is_no_mistake_when_checking(cache, amount, written, call, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", "check")
    write, count = written
    load(write, key="adding")
    amount["amount"] = 5
    assert call(load(write, key="adding"), "add", 1) == 11
    assert load(write, key="adding").is_from_cache
    assert len(count) == 3  # written each time


def test_a_choice_is_noted_once_and_only_for_the_text_that_asks(amount):
    with machine_choices.noting() as outer:
        machine_choices.chosen("amount", "1")
        machine_choices.chosen("amount", "1")
        with machine_choices.noting() as inner:
            machine_choices.chosen("amount", "2")
    machine_choices.chosen("amount", "4")
    assert outer == [("amount", "1", "3")]
    assert inner == [("amount", "2", "6")]
