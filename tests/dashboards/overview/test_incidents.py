"""Open incidents at the head of the overview."""

import csv
import io

import pytest

pytestmark = pytest.mark.anyio

OVERVIEW = "/?project=demo"


async def shown(stored_history):
    view = (await stored_history.client.get("/overview.json?project=demo")).json()
    return [(line["id"], line["kind"]) for line in view["incidents"]]


async def test_the_overview_begins_with_what_is_open_and_leads_to_all(stored_history):
    slower = stored_history.paired(stored_history.commit(2), 0.26, "slower")
    later = [stored_history.commit(number, array_bytes=4096.0 if number < 5 else 512.0) for number in range(3, 7)]
    await stored_history.upload(stored_history.commit(1), slower, *later)
    assert await shown(stored_history) == [(1, "worse")]  # neither the improvement nor what is resolved
    page = (await stored_history.client.get(OVERVIEW)).text
    assert page.index("takes 30 % more time") < page.index("Recent changes")
    assert 'href="/projects/demo/incidents/1"' in page
    assert 'href="/projects/demo/incidents">All incidents' in page


async def test_where_nothing_is_open_nothing_is_said(stored_history):
    await stored_history.upload(
        stored_history.commit(1), stored_history.paired(stored_history.commit(2), 0.26, "slower")
    )
    assert "Open incidents" in (await stored_history.client.get(OVERVIEW)).text
    answer = await stored_history.client.post("/api/v1/incidents/1/verdict", json={"verdict": "expected"})
    assert answer.status_code == 200, answer.text
    assert await shown(stored_history) == []
    assert "Open incidents" not in (await stored_history.client.get(OVERVIEW)).text


async def test_the_newest_five_are_shown(stored_history):
    await stored_history.upload(
        *(stored_history.commit(number, array_bytes=1024.0 * number, workload="lstm") for number in range(1, 8))
    )
    assert [id_ for id_, _ in await shown(stored_history)] == [6, 5, 4, 3, 2]
    assert (await stored_history.client.get("/overview.json?project=demo")).json()["incidents_left_out"] == 1
    assert (
        '<a href="/projects/demo/incidents">1 more open incident</a>'
        in (await stored_history.client.get(OVERVIEW)).text
    )


@pytest.mark.long
async def test_the_list_of_projects_shows_open_incidents_before_what_changed_lately(stored_history):
    slower = stored_history.paired(stored_history.commit(2), 0.26, "slower")
    await stored_history.upload(
        stored_history.commit(1), slower, *(stored_history.commit(number) for number in range(3, 12))
    )
    (row,) = (await stored_history.client.get("/projects.json")).json()["rows"]
    assert [line["id"] for line in row["incidents"]] == [1]
    page = (await stored_history.client.get("/projects")).text
    assert 'href="/projects/demo/incidents/1"' in page
    assert "takes 30 % more time" in page
    (told,) = csv.DictReader(io.StringIO((await stored_history.client.get("/projects.csv")).text))
    assert (told["incidents"], "30 % more time" in told["newest_incident"]) == ("1", True)


async def test_open_incidents_cost_one_statement_once_they_were_shown(stored_history, count_statements):
    await stored_history.upload(
        stored_history.commit(1), stored_history.paired(stored_history.commit(2), 0.26, "slower")
    )
    await stored_history.client.get(OVERVIEW)
    async with count_statements() as statements:
        assert "takes 30 % more time" in (await stored_history.client.get(OVERVIEW)).text
    assert len(statements) <= 5, "\n".join(map(str, statements))
