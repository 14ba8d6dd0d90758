"""The page of a report whose file is not kept any more."""

import httpx
import psycopg
import pytest

from pullback_cli.app import create_app
from pullback_service.settings import Settings

SHA = "a" * 40
TIMES = {"results": [{"command": "c", "mean": 1.0, "user": 0.5, "system": 0.1, "times": [1.0, 1.1]}]}


@pytest.mark.anyio
async def test_a_report_whose_file_was_dropped_says_so_and_where_its_points_are(database_url):
    app = create_app(Settings(database_url=database_url))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        said = {"project": "demo", "commit": SHA, "machine": "ci"}
        made = (await client.post("/api/v1/reports", params=said, json=TIMES)).json()
        with psycopg.connect(database_url) as connection:
            connection.execute("UPDATE report SET body = NULL, document = NULL")
        page = await client.get(f"/reports/{made['id']}", headers={"accept": "text/html"})
        twin = await client.get(f"/reports/{made['id']}.json")
    assert (page.status_code, twin.status_code) == (410, 410)
    assert "its points and comparisons are still there" in page.text
    assert f'href="/projects/demo/commits/{SHA}"' in page.text
    assert twin.json()["see"] == f"/projects/demo/commits/{SHA}"
