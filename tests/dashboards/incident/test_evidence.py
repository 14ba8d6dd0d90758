"""The evidence on the page of an incident: observations and levels, ratios on one axis, what speaks against it, what differs."""

import math

import pytest

pytestmark = pytest.mark.anyio

PAGE = "/projects/demo/incidents/1"


async def shown(stored_history, address=PAGE):
    answer = await stored_history.client.get(f"{address}.json")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_every_observation_around_the_change_is_drawn_with_both_levels(stored_history):
    steady = [stored_history.commit(number, array_bytes=1024.0 if number < 5 else 4096.0) for number in range(1, 9)]
    await stored_history.upload(*steady)
    await stored_history.upload(stored_history.commit(6, array_bytes=4096.0, seed=2))  # a second report of one commit
    (chart,) = (await shown(stored_history))["charts"]
    drawn = chart["chart"]
    assert (chart["metric"], len(drawn["dots"]), drawn["since"]) == ("array_bytes", 9, [3, 4])
    assert [(level["first"], level["last"], level["height"]) for level in drawn["levels"]] == [
        (0, 3, 1024),
        (4, 7, 4096),
    ]
    assert drawn["levels"][1]["words"] == "4\N{NARROW NO-BREAK SPACE}KiB since, 4.0×"
    page = (await stored_history.client.get(PAGE)).text
    assert page.count('<svg class="levels"') == 2  # for a wide window and for a narrow one
    assert page.index("Before and since") < page.index('id="triage"') < page.index('id="evidence"')


@pytest.mark.long
async def test_a_level_that_is_back_is_a_third_one(stored_history):
    sizes = (1024.0, 1024.0, 4096.0, 4096.0, 1024.0, 1024.0)
    await stored_history.upload(
        *(stored_history.commit(number, array_bytes=size) for number, size in enumerate(sizes, 1))
    )
    (chart,) = (await shown(stored_history))["charts"]
    assert [level["height"] for level in chart["chart"]["levels"]] == [1024, 4096, 1024]


async def test_groups_of_a_pair_stand_on_the_axis_of_its_ratio(stored_history):
    slower = stored_history.paired(stored_history.commit(2), 0.26, "slower")
    slower["comparisons"][-1]["log_ratios"] = [0.25, 0.26, 0.27]
    await stored_history.upload(stored_history.commit(1), slower)
    view = await shown(stored_history)
    (row,) = view["changes"]
    assert row["log_ratio"] == 0.26
    assert row["group_log_ratios"] == [0.25, 0.26, 0.27]
    page = (await stored_history.client.get(PAGE)).text
    assert page.partition('class="forest forest-worse"')[2].partition("</svg>")[0].count("forest-group") == 3


@pytest.mark.long
async def test_what_was_measured_and_did_not_move_speaks_against_it(stored_history):
    """The same count of the same variant is equal at the same commit on another machine."""
    elsewhere = [stored_history.commit(number, machine="other") for number in (1, 2)]
    await stored_history.upload(stored_history.commit(1), stored_history.commit(2, array_bytes=4096.0), *elsewhere)
    view = await shown(stored_history)
    assert {(one["variant"], one["machine"], one["says"]) for one in view["against"]} == {
        ("fused", "other", "measured at the commit, and did not change")
    }


async def test_where_nothing_speaks_against_it_the_page_says_so(stored_history):
    await stored_history.upload(stored_history.commit(1), stored_history.commit(2, wrong=("lstm",)))
    assert (await shown(stored_history))["against"] == []
    assert "Nothing: no comparison of the two commits came out the same" in (await stored_history.client.get(PAGE)).text


async def test_what_differs_in_machine_and_software_is_shown(stored_history):
    later = stored_history.paired(stored_history.commit(2), 0.26, "slower")
    later["machine"]["facts"] = {**later["machine"]["facts"], "numpy": "9.9.9"}
    await stored_history.upload(stored_history.commit(1), later)
    differing = (await shown(stored_history))["differing"]
    assert any("numpy" in fact["name"] for fact in differing["environment"])
    assert "What differs in program and software" in (await stored_history.client.get(PAGE)).text


async def test_a_ratio_of_eighty_is_a_factor_and_no_percentage(stored_history):
    await stored_history.upload(
        stored_history.commit(1), stored_history.paired(stored_history.commit(2), math.log(81), "slower")
    )
    view = await shown(stored_history)
    assert any("81×" in level["words"] for chart in view["charts"] for level in chart["chart"]["levels"])


async def test_charts_of_a_workload_mark_where_something_was_told(stored_history):
    await stored_history.upload(stored_history.commit(1))
    await stored_history.upload(*(stored_history.commit(number, array_bytes=4096.0) for number in (2, 3)))
    view = (await stored_history.client.get("/projects/demo/workloads/lstm.json")).json()["view"]
    (mark,) = [event for event in view["events"] if event["lane"] == "incidents"]
    assert (mark["place"], mark["tone"], mark["sentences"]) == (1, "worse", ["incident 1: worse, confirmed, announced"])
