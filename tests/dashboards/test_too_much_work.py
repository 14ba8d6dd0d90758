"""Whoever asked for too much work reads so in a sentence, on a page where a page was asked for."""

import httpx
import pytest

from pullback_cli.app import create_app
from pullback_service.access import budgets
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("path", "form"), [("/help", "text/html"), ("/api/v1/whoami", "application/problem+json")])
async def test_a_refusal_says_how_long_to_wait(database_url, tmp_path, monkeypatch, path, form):
    monkeypatch.setattr(budgets, "REQUEST_S", 1000)
    (tmp_path / "token").write_text("open sesame")
    settings = Settings(database_url=database_url, auth="token", token_file=tmp_path / "token")
    app = create_app(settings)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=30) as client,
    ):
        accepting = {"accept": "text/html,*/*"}
        assert (await client.get(path, headers=accepting)).status_code == 200
        refused = await client.get(path, headers=accepting)
    assert (refused.status_code, refused.headers["content-type"].partition(";")[0]) == (429, form)
    wait = int(refused.headers["retry-after"])
    assert 1 <= wait <= 60
    sentence = f"The requests of this address took more than 0.5 s of work a second: wait {wait} s, then send the same request again."
    assert sentence in refused.text
