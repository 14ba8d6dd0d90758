"""No page and no format of it that people read holds a character that turns, hides or moves what stands beside it; JSON says what was sent."""

import httpx
import orjson
import pytest

from pullback_cli.app import create_app
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

UNSEEN = "\u202e\u200b\u2066\ufeff"
MARKS = "⟨U+202E⟩⟨U+200B⟩⟨U+2066⟩⟨U+FEFF⟩"
STACKED = "e" + "\u0301" * 40


@pytest.fixture
async def pages(database_url):
    app = create_app(Settings(database_url=database_url))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=30) as client,
    ):
        yield client


async def test_strangers_text_is_shown_with_marks_and_sent_as_it_is(pages):
    name = f"w{UNSEEN}{STACKED}"
    file = {name: {f"latency{UNSEEN}": {"value": 1.5}}}
    stated = {
        "project": "p",
        "commit": "a" * 40,
        "machine": "m",
        "branch": f"main{UNSEEN}",
        "format": "bencher",
        "unit": "ns",
        "direction": "smaller",
    }
    sent = await pages.post("/api/v1/reports", params=stated, content=orjson.dumps(file))
    assert sent.status_code == 201, sent.text
    commit = f"/projects/p/commits/{'a' * 40}"
    report = f"/reports/{sent.json()['id']}"
    for path in (
        "/?project=p",
        "/overview.md?project=p",
        commit,
        f"{commit}.md",
        report,
        f"{report}.md",
        "/projects/p/explore",
    ):
        answer = await pages.get(path)
        assert answer.status_code == 200, (path, answer.text)
        assert not {*UNSEEN} & {*answer.text}, path
        assert "\u0301" * 5 not in answer.text, path
        if path.startswith(("/?", "/overview", commit)):
            assert MARKS in answer.text.replace("\\", ""), path
    assert UNSEEN in (await pages.get(f"{report}.json")).text
