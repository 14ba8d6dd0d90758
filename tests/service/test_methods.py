"""A method that is not possible is answered with those that are."""

import pytest

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/v1/jobs", "GET, POST"),
        ("/api/v1/projects/some/name", "GET, PATCH"),
        ("/api/v1/jobs/1/cancel", "POST"),
        ("/healthz", "GET"),
    ],
)
async def test_all_methods_of_a_place_are_named(client, path, methods):
    response = await client.request("DELETE", path)
    assert (response.status_code, response.headers["allow"]) == (405, methods)
    assert f"use {methods}" in response.json()["detail"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/api/v1/projects", "/api/v1/jobs/7"])
async def test_head_answers_what_get_does_without_the_content(client, path):
    whole, head = await client.get(path), await client.head(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-length"] == whole.headers["content-length"]
    assert head.headers["content-type"] == whole.headers["content-type"]


@pytest.mark.parametrize("time", ["0.5", "1700000000", "+3", "1e9"])
async def test_numbers_are_no_times(client, time):
    response = await client.post("/api/v1/reports", params={"authored_at": time}, json={})
    assert response.status_code == 422
    assert "like 2026-01-31T12:00:00Z" in response.json()["detail"]
