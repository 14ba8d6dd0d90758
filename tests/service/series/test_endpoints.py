"""Series and points over HTTP."""

import pytest

pytestmark = pytest.mark.anyio

URL = "/api/v1/series"


@pytest.fixture
async def measured(client, reports):
    """Five commits on two machines."""
    for number in range(1, 6):
        upload = reports.report(number, machine="box" if number < 5 else "other box")
        assert (await client.post("/api/v1/reports", json=upload)).status_code == 201
    return client


async def items(client, url=URL, **params):
    response = await client.get(url, params=params)
    assert response.status_code == 200, response.text
    return response.json()["items"]


async def test_series_are_found_by_every_dimension(measured):
    assert len(await items(measured)) == 8
    fitting = {
        "project": "demo",
        "workload": "dense_bias_act",
        "case": "dense_bias_act[n=100,act=tanh,f4,cpu]",
        "dtype": "f4",
        "device": "cpu",
        "variant": "fused",
        "kind": "tier",
        "metric": "time",
        "machine": "box",
    }
    (found,) = await items(measured, **fitting)
    assert found["case"]["params"] == {"n": 100, "act": "tanh"}
    assert (found["unit"], found["direction"], found["exact"]) == ("s", "smaller", False)
    for name in set(fitting) - {"kind", "project"}:
        assert await items(measured, **{**fitting, name: "other"}) == []
    assert await items(measured, **{**fitting, "kind": "peer"}) == []
    assert (await measured.get(URL, params={"project": "other"})).status_code == 404


async def test_a_machine_is_named_by_its_fingerprint_too(measured):
    assert len(await items(measured, machine="fingerprint of box")) == 4


async def test_points_come_oldest_commit_first_page_by_page(measured, reports):
    (series,) = await items(measured, variant="fused", metric="time", machine="box")
    url = f"{URL}/{series['id']}/points"
    first = (await measured.get(url, params={"limit": 3})).json()
    rest = (await measured.get(url, params={"limit": 3, "cursor": first["next"]})).json()
    shas = [point["commit"] for point in first["items"] + rest["items"]]
    assert shas == [reports.sha(number) for number in (1, 2, 3, 4)]
    assert rest["next"] is None
    point = first["items"][0]
    assert point["raw"] is None
    assert point["spread"]["median"] == point["value"] == 0.6
    assert (point["log_ratio"], point["n"], point["outcome"]) == (-0.5, 20, "faster")


async def test_a_window_cuts_history_by_the_place_of_commits(measured, reports):
    (series,) = await items(measured, variant="fused", metric="time", machine="box")
    url = f"{URL}/{series['id']}/points"
    inside = await items(measured, url, start="2026-01-03T00:00:00Z", end="2026-01-04T00:00:00Z")
    assert [point["commit"] for point in inside] == [reports.sha(2), reports.sha(3)]


async def test_an_unknown_series_is_a_problem(client):
    assert (await client.get(f"{URL}/1/points")).status_code == 404
    assert (await client.get(f"{URL}/{2**63}/points")).status_code == 422


async def test_commits_are_listed_newest_first_with_their_parents(measured, reports):
    first = (await measured.get("/api/v1/commits", params={"project": "demo", "limit": 3})).json()
    rest = (
        await measured.get("/api/v1/commits", params={"project": "demo", "limit": 3, "cursor": first["next"]})
    ).json()
    listed = first["items"] + rest["items"]
    assert [commit["sha"] for commit in listed] == [reports.sha(number) for number in (5, 4, 3, 2, 1)]
    assert listed[0]["parents"] == [reports.sha(4)]
    assert (await measured.get("/api/v1/commits", params={"project": "none"})).status_code == 404
    assert await items(measured, "/api/v1/commits", project="demo", branch="other") == []


async def test_machines_are_listed(measured):
    machines = await items(measured, "/api/v1/machines")
    assert [machine["name"] for machine in machines] == ["box", "other box"]
    assert machines[0]["facts"] == {"cpu": "fast", "cores": 2}
