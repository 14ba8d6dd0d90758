"""List, feed, badge and API narrow the incidents of a project by the same words."""

from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.anyio

CATEGORY = "{http://www.w3.org/2005/Atom}entry/{http://www.w3.org/2005/Atom}category"


@pytest.fixture
async def two(stored_history):
    """`lstm` takes more memory since the second commit, `dense` computes a wrong gradient since the third."""
    await stored_history.upload(
        stored_history.commit(1),
        stored_history.commit(2, array_bytes=4096.0),
        stored_history.commit(3, array_bytes=4096.0, wrong=("dense",)),
        stored_history.commit(4, array_bytes=4096.0, wrong=("dense",)),
    )
    return stored_history


async def kinds(stored_history, **asked):
    """The kinds of incidents by the API, the list and the feed, held to be the same."""
    client = stored_history.client
    answer = await client.get("/api/v1/incidents", params={"project": "demo", **asked})
    assert answer.status_code == 200, answer.text
    found = [each["kind"] for each in answer.json()["items"]]
    listed = await client.get("/projects/demo/incidents.json", params={"show": "all", "sort": "newest", **asked})
    assert sorted(line["kind"] for line in listed.json()["lines"]) == sorted(found)
    feed = ET.fromstring((await client.get("/projects/demo/feed.atom", params=asked)).content)  # noqa: S314 - our own
    assert [category.get("term") for category in feed.findall(CATEGORY)] == found
    return found


async def badge(stored_history, **asked):
    answer = await stored_history.client.get("/projects/demo/incidents.badge.svg", params=asked)
    assert answer.headers["content-type"] == "image/svg+xml"
    return answer.text.partition("<title>")[2].partition("</title>")[0]


async def test_workload_case_variant_and_machine_choose_the_incidents_that_changed_there(two):
    assert await kinds(two) == ["wrong_gradient", "worse"]
    assert await kinds(two, workload="dense") == ["wrong_gradient"]
    assert await kinds(two, case="lstm[n=100,act=tanh,f4,cpu]") == ["worse"]
    assert await kinds(two, variant="fused", workload="lstm") == ["worse"]
    assert await kinds(two, machine="box") == ["wrong_gradient", "worse"]
    assert await kinds(two, machine="another") == await kinds(two, workload="dense", kind="worse") == []


async def test_the_badge_counts_what_is_open(two):
    assert await badge(two) == "demo: 1 wrong gradient, 1 worse"
    assert await badge(two, workload="lstm") == "lstm: 1 worse"
    assert await badge(two, workload="lstm", machine="another") == "lstm on another: no open incidents"
    await two.client.post("/api/v1/incidents/1/verdict", json={"verdict": "expected"})
    assert await badge(two) == "demo: 1 wrong gradient"


async def test_before_anybody_looked_the_badge_says_so(stored_history):
    await stored_history.client.post("/api/v1/reports", json=stored_history.commit(1))
    assert await badge(stored_history) == "demo: not watched yet"


async def test_improvements_are_in_feed_and_badge_where_they_are_asked_for(stored_history):
    await stored_history.upload(
        stored_history.commit(1), *(stored_history.commit(number, array_bytes=512.0) for number in (2, 3))
    )
    feed = await stored_history.client.get("/projects/demo/feed.atom")
    assert "<entry>" not in feed.text
    assert await badge(stored_history) == "demo: no open incidents"
    assert await kinds(stored_history, kind="better") == ["better"]
    assert await badge(stored_history, kind="better") == "demo: 1 better"


async def test_the_page_says_what_narrows_it_and_has_the_badge_of_the_same(two):
    page = (await two.client.get("/projects/demo/incidents", params={"workload": "lstm", "show": "all"})).text
    assert "/projects/demo/incidents.badge.svg?workload=lstm" in page
    assert "/projects/demo/feed.atom?workload=lstm" in page
    view = (await two.client.get("/projects/demo/incidents.json", params={"workload": "lstm"})).json()
    (asked,) = [each for each in view["questions"] if each["label"] == "workload"]
    assert [(o["text"], o["current"]) for o in asked["options"]] == [("any", False), ("lstm", True)]
    assert asked["options"][0]["href"] == "/projects/demo/incidents"
