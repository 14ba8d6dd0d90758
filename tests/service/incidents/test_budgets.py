"""Values over the budget of a rule: the rule, and the incidents that it makes."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.incidents.budgets import over_budget
from pullback_service.rules.budgets import BudgetedSeries, spent_of

PLACES = {commit: commit for commit in range(60)}
COUNT = BudgetedSeries(1, 1, 1, "fused", "array_allocs", exact=True, budget=0)
TIME = BudgetedSeries(1, 1, 1, "fused", "time", exact=False, budget=0.5)
URL = "/api/v1/rules?project=demo"


def found(series, readings):
    spent = [spent_of(series, commit, *reading) for commit, reading in enumerate(readings)]
    changes = over_budget(series, [each for each in spent if each is not None], PLACES)
    return [(change.reference_id, change.commit_id, change.ended_id) for change in changes]


def counts(*values):
    return found(COUNT, [(value, None, None) for value in values])


def ratios(*values, half=0.01):
    none = (1.0, None, None)
    return found(TIME, [none if each is None else (1.0, log(each), log(each) - half) for each in values])


def test_a_count_is_over_at_once_and_back_at_once():
    assert counts(0, 0, 3, 3, 0, 1) == [(1, 2, 4), (4, 5, None)]


def test_what_was_over_from_the_beginning_no_commit_brought():
    assert counts(3, 3, 3) == []
    assert counts(3, 3, 0, 2) == [(2, 3, None)]


def test_a_time_is_over_beyond_its_interval_and_twice_in_a_row():
    assert ratios(0.4, 0.4, 0.502, 0.502, 0.502) == []
    assert ratios(0.4, 0.6, 0.4, 0.6) == []
    assert ratios(0.4, 0.6, 0.6, None, 0.4) == [(0, 1, 4)]


@given(st.lists(st.integers(0, 3), max_size=30))
def test_stretches_are_all_commits_over_the_budget_behind_one_that_is_not(values):
    over = set()
    for reference, commit, ended in counts(*values):
        assert reference == commit - 1
        assert values[reference] == 0
        over |= set(range(commit, len(values) if ended is None else ended))
    first = next((place for place, value in enumerate(values) if value == 0), len(values))
    assert over == {place for place, value in enumerate(values) if value > 0 and place > first}


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(2, 30))
def test_the_newest_readings_and_what_was_found_before_say_what_all_readings_do(values, most):
    spent = [spent_of(COUNT, commit, value, None, None) for commit, value in enumerate(values)]
    found = []
    for end in range(1, len(values) + 1):
        found = over_budget(COUNT, spent[:end][-most:], PLACES, found if end > most else ())
    assert sorted(found) == sorted(over_budget(COUNT, spent, PLACES))


@pytest.mark.anyio
async def test_a_budget_that_is_exceeded_is_an_incident_of_its_commit_told_once(history, reports):
    await history.upload(history.commit(1))
    answer = await history.client.put(
        URL, json={"rules": [{"metric": "array_bytes", "variant": "fused", "budget": 2000}]}
    )
    assert answer.status_code == 200, answer.text
    sizes = {2: 1024.0, 3: 1500.0, 4: 2048.0, 5: 2048.0, 6: 1024.0}
    await history.upload(*(history.commit(number, array_bytes=size) for number, size in sizes.items()), look=True)
    details = await history.incidents()
    exceeded = [each for each in details if any(change.change.evidence == "budget" for change in each.changes)]
    (only,) = exceeded
    assert (only.reference.sha, only.commit.sha, only.ended.sha) == (reports.sha(3), reports.sha(4), reports.sha(6))
    assert only.incident.state == "resolved"
    assert [event for incident, event in await history.told() if incident == only.incident.id] == [
        "confirmed",
        "resolved",
    ]
    whole = (await history.client.get(f"/api/v1/incidents/{only.incident.id}")).json()
    assert "over its budget (array_bytes is 2048, budget 2000)" in whole["sentence"]
    assert [(rule["number"], rule["says"]) for rule in whole["rules"]] == [(1, "budget = 2000")]


@pytest.mark.anyio
async def test_a_dry_run_looks_for_values_over_a_new_budget_in_the_past(history, reports):
    sizes = [1024.0, 1024.0, 2048.0, 2048.0, 512.0, 1024.0]
    documents = [history.commit(number, array_bytes=size) for number, size in enumerate(sizes, 1)]
    await history.upload(*documents)

    async def foreseen(budget, **rule):
        rules = {"rules": [{"metric": "array_bytes", "variant": "fused", "budget": budget, **rule}]}
        answer = await history.client.put("/api/v1/rules", params={"project": "demo", "dry_run": True}, json=rules)
        return [(each["id"], each["told"], each["would_be_told"]) for each in answer.json()["last_90_days"]]

    assert await foreseen(1500) == [(None, False, True)]  # both ends were known before anybody could be told
    assert await foreseen(3000) == []
    answer = await history.client.put(
        "/api/v1/rules",
        params={"project": "demo", "dry_run": True},
        json={"rules": [{"metric": "array_bytes", "variant": "fused", "budget": 1500}]},
    )
    (new,) = answer.json()["last_90_days"]
    assert new["sentence"] == (
        f"`fused` of `lstm` is over its budget (array_bytes is 2048, budget 1500) since {reports.sha(3)[:7]} "
        '"Change 3", in `lstm[n=100,act=tanh,f4,cpu]`.'
    )
    assert (await history.client.get(URL)).json()["rules"] == []


@pytest.mark.long
@pytest.mark.anyio
async def test_a_budget_that_is_broken_by_what_is_an_incident_already_is_that_one(history):
    sizes = [1024.0, 1900.0, 1900.0]
    await history.upload(*(history.commit(number, array_bytes=size) for number, size in enumerate(sizes, 1)))
    (known,) = await history.incidents()
    rules = [{"at_least": 0.95}, {"metric": "array_bytes", "budget": 1500}]
    for wanted, would in ((rules[:1], False), (rules, True)):
        answer = await history.client.put(
            "/api/v1/rules", params={"project": "demo", "dry_run": True}, json={"rules": wanted}
        )
        found = [(each["id"], each["told"], each["would_be_told"]) for each in answer.json()["last_90_days"]]
        assert found == [(known.incident.id, True, would)]


@pytest.mark.long
@pytest.mark.anyio
async def test_a_budget_that_was_exceeded_before_there_was_a_rule_is_seen_and_not_told(history):
    sizes = [1024.0, 2048.0, 2048.0, 2048.0]
    documents = [history.commit(number, array_bytes=size) for number, size in enumerate(sizes, 1)]
    await history.upload(*documents[:3])
    told = await history.told()
    await history.client.put(URL, json={"rules": [{"metric": "array_bytes", "budget": 2000}]})
    await history.look()
    await history.upload(documents[3])
    assert await history.told() == told
