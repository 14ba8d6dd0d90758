"""Charts of explore show at which commit an incident changed one of their series, and lead to it."""

import pytest

pytestmark = pytest.mark.anyio


async def test_explore_marks_the_commit_of_an_incident_in_the_chart_of_its_series_alone(stored_history):
    await stored_history.upload(
        stored_history.commit(1), *(stored_history.commit(number, array_bytes=4096.0) for number in (2, 3))
    )
    view = (await stored_history.client.get("/projects/demo/explore.json", params={"variant": "fused"})).json()
    charts = {chart["title"]: chart for chart in view["charts"]}
    (incident,) = charts["array bytes"]["incidents"]
    assert (incident["sign"], incident["text"]) == ("▲", "incident 1: worse, confirmed")
    assert [note["place"] for note in charts["array bytes"]["axes"]["notes"]] == [1]
    assert charts["time"]["incidents"] == charts["time"]["axes"]["notes"] == []
    page = (await stored_history.client.get("/projects/demo/explore", params={"variant": "fused"})).text
    assert page.count('href="/projects/demo/incidents/1"') == 1
