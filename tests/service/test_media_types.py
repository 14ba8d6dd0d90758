"""JSON that is not sent as JSON is told what to do, not that it is no object."""

import json

import pytest

pytestmark = pytest.mark.anyio

JOB = {"project": "demo", "commit": {"sha": "a" * 40}, "suite": "quick"}


@pytest.mark.parametrize("media_type", ["application/x-www-form-urlencoded", "text/plain", None])
async def test_json_under_another_name_is_refused_with_the_remedy(client, media_type):
    headers = {"Content-Type": media_type} if media_type else {}
    response = await client.post("/api/v1/jobs", content=json.dumps(JOB), headers=headers)
    assert response.status_code == 415
    assert "send it with Content-Type: application/json" in response.json()["detail"]
    assert (media_type or "without a Content-Type") in response.json()["detail"]


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/json; charset=utf-8", "application/vnd.x+json"]
)
async def test_json_by_its_names_is_read(client, media_type):
    response = await client.post("/api/v1/jobs", content=json.dumps(JOB), headers={"Content-Type": media_type})
    assert response.status_code == 201


async def test_json_that_is_no_object_is_still_an_invalid_request(client):
    response = await client.post("/api/v1/jobs", json=[1])
    assert (response.status_code, response.json()["errors"][0]["path"]) == (422, "$")


@pytest.mark.parametrize("name", [".", "..", "a/../b", "./a"])
async def test_names_that_browsers_take_for_steps_are_refused(client, report, name):
    response = await client.post("/api/v1/reports", json={**report, "project": name})
    assert response.status_code == 422
    assert "$.project" in response.json()["detail"]
    assert "must not have . or .." in response.json()["detail"]
    assert (await client.post("/api/v1/projects", json={"name": name})).status_code == 422
    report["cases"][0]["case"]["workload"] = name
    refused = await client.post("/api/v1/reports", json=report)
    assert refused.json()["errors"][0]["path"] == "$.cases[0].case.workload"


@pytest.mark.parametrize("name", ["...", "a.json", ".hidden", "a..b/c."])
async def test_other_dots_are_names(client, report, name):
    assert (await client.post("/api/v1/reports", json={**report, "project": name})).status_code == 201
