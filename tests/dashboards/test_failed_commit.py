"""The page of a commit whose job failed."""

import httpx
import pytest

from pullback_cli.app import create_app
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

API = "/api/v1"
SHA = "a" * 40
REASON = "`make` ended with exit status 2\n  what it wrote"


@pytest.fixture
async def client(database_url):
    app = create_app(Settings(DATABASE_URL=database_url))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        yield client


async def test_the_reason_of_the_failure_stands_where_no_results_do(client):
    job = {"project": "p", "commit": {"sha": SHA}, "suite": "quick"}
    (await client.post(f"{API}/jobs", json=job)).raise_for_status()
    assert "To measure it:" in (await client.get(f"/projects/p/commits/{SHA}")).text
    me = {"name": "agent", "machine": {"fingerprint": "f", "name": "box"}}
    enrolled = (await client.post(f"{API}/agents/enroll", json=me)).raise_for_status().json()
    claim = (await client.post(f"{API}/agents/{enrolled['agent_id']}/claim", json={})).json()
    end = {"lease_token": claim["lease_token"], "kind": "build", "message": REASON, "retryable": False}
    attempt = f"{API}/jobs/{claim['job']['id']}/attempts/1"
    (await client.post(f"{attempt}/fail", json=end)).raise_for_status()
    shown = (await client.get(f"/projects/p/commits/{SHA}")).text
    assert "failed: <bdi>build: `make` ended with exit status 2</bdi>" in shown
    assert "To measure it:" not in shown
    (row,) = (await client.get(f"/projects/p/commits/{SHA}.json")).json()["jobs"]
    assert row["failure"] == f"build: {REASON}"
