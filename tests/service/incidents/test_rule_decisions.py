"""What rules keep from being told, and from being an incident."""

import pytest

pytestmark = pytest.mark.anyio

URL = "/api/v1/rules?project=demo"


@pytest.fixture
async def put(history):
    """Replace the rules of a project whose first commit was uploaded."""
    await history.upload(history.commit(1))

    async def put(*rules, **asked):
        answer = await history.client.put("/api/v1/rules", params={"project": "demo", **asked}, json={"rules": rules})
        assert answer.status_code == 200, answer.text
        return answer.json()

    return put


async def slower(history, number, log_ratio):
    await history.upload(history.paired(history.commit(number), log_ratio, "slower"))


async def rules_of(history, incident):
    return (await history.client.get(f"/api/v1/incidents/{incident}")).json()["rules"]


async def test_a_change_smaller_than_a_rule_asks_for_is_kept_and_not_told(history, put):
    await put({"variant": "fused", "at_least": 0.1})
    await slower(history, 2, 0.05)
    (only,) = await history.incidents()
    assert (only.incident.state, only.incident.told_to) == ("confirmed", [])
    assert await history.told() == []
    (held,) = await rules_of(history, only.incident.id)
    assert (held["number"], held["says"]) == (1, "at_least = 0.1")
    await slower(history, 3, 0.2)
    assert [event for _, event in await history.told()] == ["confirmed"]


@pytest.mark.long
async def test_what_was_kept_is_told_once_it_has_grown(history, put):
    await put({"at_least": 0.1})
    await slower(history, 2, 0.05)
    assert await history.told() == []
    other = history.paired(history.commit(2), 0.05, "slower")
    await history.upload(history.paired(other, 0.3, "slower", workload="dense"))
    assert [event for _, event in await history.told()] == ["confirmed"]


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("rule", [{"at_least": 0.1}, {"tell": []}])
async def test_what_was_kept_is_told_once_the_rules_no_longer_keep_it(history, put, rule):
    await put(rule)
    await slower(history, 2, 0.05)
    assert await history.told() == []
    await put({"at_least": 0.02})
    await history.look()
    assert [event for _, event in await history.told()] == ["confirmed"]


@pytest.mark.long
async def test_what_was_kept_by_one_rule_and_is_kept_by_another_names_that_one(history, put):
    await put({"at_least": 0.1})
    await slower(history, 2, 0.05)
    await put({"tell": []})
    await history.look()
    assert await history.told() == []
    (only,) = await history.incidents()
    assert [each["says"] for each in await rules_of(history, only.incident.id)] == ["tell, 0 channels"]


async def test_channels_that_rules_name_are_told_and_no_others(history, put):
    for name in ("team", "gpu"):
        channel = {"project": "demo", "name": name, "kind": "webhook", "url": "https://192.0.2.1/hook"}
        made = await history.client.post("/api/v1/channels", json=channel)
        if made.status_code == 422:  # no network is asked: the address is refused where it is not public
            channel["url"] = "https://8.8.8.8/hook"
            made = await history.client.post("/api/v1/channels", json=channel)
        assert made.status_code == 201, made.text
    await put({"workload": "lstm", "tell": ["gpu"]})
    await slower(history, 2, 0.3)
    channels = (await history.client.get("/api/v1/channels")).json()["items"]
    waiting = {each["name"]: each["waiting"] for each in channels}
    assert waiting == {"team": 0, "gpu": 1}
    assert [event for _, event in await history.told()] == ["confirmed"]


@pytest.mark.long
async def test_series_that_are_not_watched_make_no_incidents_and_later_none_that_is_told(history, put):
    await put({"workload": "lstm", "watch": False}, {"workload": "lstm", "metric": "array_bytes", "watch": True})
    await slower(history, 2, 0.3)
    assert await history.incidents() == []
    await history.upload(history.commit(3, array_bytes=4096.0))
    (grown,) = await history.incidents()
    assert {each.metric for each in grown.changes} == {"array_bytes"}
    told = await history.told()
    await put()
    await history.look()
    assert [each.incident.seen for each in await history.incidents()] == [False, True]
    assert await history.told() == told


@pytest.mark.long
async def test_an_incident_that_was_told_goes_on_when_its_series_is_not_watched_any_more(history, put):
    await slower(history, 2, 0.3)
    await put({"watch": False})
    await history.look()
    await history.upload(history.commit(3))
    assert [each.incident.state for each in await history.incidents()] == ["confirmed"]
    assert [event for _, event in await history.told()] == ["confirmed"]


async def test_a_dry_run_says_what_would_have_been_told_and_changes_nothing(history, put):
    await slower(history, 2, 0.05)
    await history.upload(*(history.commit(number, array_bytes=4096.0) for number in (3, 4)))
    answer = await put({"at_least": 0.5}, dry_run=True)
    found = [(each["told"], each["would_be_told"]) for each in answer["last_90_days"]]
    assert found == [(True, True), (True, False)]
    assert (await history.client.get(URL)).json()["rules"] == []
    unwatched = await put({"metric": "array_bytes", "watch": False}, dry_run=True)
    assert [each["would_be_told"] for each in unwatched["last_90_days"]] == [False, True]
