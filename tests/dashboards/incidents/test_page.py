"""The list of a project's incidents: what it shows, in which order, and how it is narrowed."""

import csv
import io

import pytest

pytestmark = pytest.mark.anyio

LIST = "/projects/demo/incidents"


@pytest.fixture
async def several(stored_history):
    """An open incident of time; behind it one of memory that is over, and an improvement."""
    slower = stored_history.paired(stored_history.commit(2), 0.26, "slower")
    slower["commit"]["title"] = "Unfuse `it` <b>"
    later = [stored_history.commit(number, array_bytes=4096.0 if number < 5 else 512.0) for number in range(3, 7)]
    await stored_history.upload(stored_history.commit(1), slower, *later)
    return stored_history


async def listed(stored_history, **query):
    answer = await stored_history.client.get(f"{LIST}.json", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_open_incidents_come_before_those_that_are_over(several):
    view = await listed(several, show="all")
    assert [(line["kind"], line["state"], line["is_open"]) for line in view["lines"]] == [
        ("worse", "confirmed", True),
        ("better", "confirmed", True),
        ("worse", "resolved", False),
    ]
    assert [line["id"] for line in view["lines"]] == [1, 3, 2]
    assert [line["id"] for line in (await listed(several, show="all", sort="newest"))["lines"]] == [3, 1, 2]
    page = (await several.client.get(LIST, params={"show": "all"})).text
    assert page.index('id="open"') < page.index("takes 30 % more time") < page.index('id="closed"')


async def test_a_line_has_the_sentence_of_the_service_and_what_it_is_about(several):
    (said,) = (await several.client.get("/api/v1/incidents", params={"state": "confirmed", "kind": "worse"})).json()[
        "items"
    ]
    (line,) = (await listed(several, state="confirmed", kind="worse"))["lines"]
    assert line["sentence"] == said["sentence"]
    assert (line["href"], line["cases"], line["machines"], line["verdict"]) == (f"{LIST}/1", 1, 1, None)
    page = (await several.client.get(LIST)).text
    assert "<code>fused</code> of <code>lstm</code> takes 30 % more time" in page
    assert "&#34;Unfuse &#39;it&#39; &lt;b&gt;&#34;" in page


@pytest.mark.long
async def test_a_verdict_stands_in_the_line(several):
    answer = await several.client.post("/api/v1/incidents/1/verdict", json={"verdict": "expected"})
    assert answer.status_code == 200, answer.text
    (line,) = [line for line in (await listed(several, show="closed"))["lines"] if line["id"] == 1]
    assert (line["state"], line["verdict"]["verdict"]) == ("resolved", "expected")
    rows = list(csv.DictReader(io.StringIO((await several.client.get(f"{LIST}.csv?show=all")).text)))
    assert {(row["id"], row["verdict"]) for row in rows} == {("3", ""), ("2", ""), ("1", "expected")}


async def test_states_and_kinds_narrow_the_list_by_its_address(several):
    assert [line["id"] for line in (await listed(several, state="resolved"))["lines"]] == [2]
    view = await listed(several, kind="better")
    assert [line["id"] for line in view["lines"]] == [3]
    chosen = {one["label"]: [o["text"] for o in one["options"] if o["current"]] for one in view["questions"]}
    assert chosen == {"show": ["open"], "kind": ["better"], "sort": ["cost"]}
    assert (await listed(several, state="refuted"))["empty"]["title"] == "No such incidents"


@pytest.mark.long
async def test_what_costs_most_comes_first_and_what_does_not_work_before_all(stored_history):
    await stored_history.upload(
        stored_history.commit(1),
        stored_history.commit(2, array_bytes=2048.0, workload="dense"),
        stored_history.commit(3, array_bytes=8192.0),
        stored_history.commit(4, array_bytes=8192.0, wrong=("dense",)),
    )
    lines = (await listed(stored_history))["lines"]
    assert [(line["kind"], line["commit"][-1]) for line in lines[:2]] == [("wrong_gradient", "4"), ("worse", "3")]


@pytest.mark.long
async def test_what_was_told_is_a_list_of_its_own(several):
    assert {line["id"] for line in (await listed(several, show="told"))["lines"]} == {1}


async def test_a_long_list_comes_in_pages(several, monkeypatch):
    monkeypatch.setattr("pullback_dashboards.incidents.page.ON_A_PAGE", 2)
    first = await listed(several, show="all")
    assert ([line["id"] for line in first["lines"]], first["newer_href"]) == ([1, 3], None)
    second = (await several.client.get(first["older_href"].replace("incidents?", "incidents.json?"))).json()
    assert ([line["id"] for line in second["lines"]], second["older_href"]) == ([2], None)
    assert second["newer_href"] == f"{LIST}?show=all"


async def test_a_project_without_incidents_is_told_what_would_appear_and_how(stored_history):
    await stored_history.upload(stored_history.commit(1))
    page = (await stored_history.client.get(LIST)).text
    assert "Nothing is open" in page
    assert "No commit of the trunk is known to have made a gradient slower" in page
    assert "<code>pullback project set demo --trunk BRANCH</code>" in page


async def test_an_address_without_a_project_leads_to_the_newest_one(stored_history):
    assert "No projects yet" in (await stored_history.client.get("/incidents")).text
    await stored_history.upload(stored_history.commit(1))
    answer = await stored_history.client.get("/incidents?kind=worse")
    assert (answer.status_code, answer.headers["location"]) == (307, f"{LIST}?kind=worse")
