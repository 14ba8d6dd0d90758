"""Links that leave the service have its public address, whatever host a request names."""

import re

import httpx
import orjson
import pytest

from pullback_cli.app import create_app
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

PUBLIC = "https://pullback.example"
EVIL = {"host": "evil.example:81", "x-forwarded-host": "evil.example:81"}


@pytest.fixture
async def public(database_url, tmp_path):
    """A service with a public address and authentication, asked as its administrator."""
    (tmp_path / "token").write_text("open sesame")
    settings = Settings(database_url=database_url, auth="token", token_file=tmp_path / "token", public_url=f"{PUBLIC}/")
    app = create_app(settings)
    headers = {"authorization": "Bearer open sesame"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", headers=headers) as client,
    ):
        yield client


async def test_no_answer_names_the_host_that_a_request_names(public):
    empty = ["/", "/projects", "/projects.md", "/fleet", "/fleet.md", "/jobs", "/explore"]
    bodies = {path: (await public.get(path, headers=EVIL, follow_redirects=True)).text for path in empty}
    file = {"results": [{"command": "sleep 1", "times": [1.0, 2.0]}]}
    stated = {"project": "p", "commit": "a" * 40, "machine": "m", "branch": "main"}
    sent = await public.post("/api/v1/reports", params=stated, content=orjson.dumps(file), headers=EVIL)
    assert sent.status_code == 201, sent.text
    assert sent.headers["location"] == sent.json()["url"]
    assert sent.json()["url"].startswith("/api/v1/reports/")
    commit, report = f"/projects/p/commits/{'a' * 40}", f"/reports/{sent.json()['id']}"
    stored = ["/?project=p", "/overview.md?project=p", commit, f"{commit}.md", report, f"{report}.md"]
    stored += [
        "/projects/p/feed.atom",
        "/projects/p/incidents.md",
        "/projects/p/incidents.badge.svg",
        "/projects/p/explore.md",
    ]
    for path in stored:
        answer = await public.get(path, headers=EVIL)
        assert answer.status_code == 200, (path, answer.text)
        bodies[path] = answer.text
    assert [path for path, body in bodies.items() if "evil.example" in body] == []
    linked = [path for path, body in bodies.items() if PUBLIC in body]
    assert {"/projects", "/fleet", "/jobs", "/projects/p/feed.atom", f"{commit}.md", f"{report}.md"} <= {*linked}
    assert all(not re.search(r"https://pullback\.example/{2}", body) for body in bodies.values())
