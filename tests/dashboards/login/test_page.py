"""Whoever asks without a token, or with none in the field, is told so."""

from contextlib import asynccontextmanager
from html import unescape

import httpx
import pytest

from pullback_cli.app import create_app
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio
SECRET = "a-secret-long-enough-to-be-one"  # noqa: S105 - of this test's own service
NOT_GIVEN = "No token given: paste one into the field."


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def visiting(database_url, tmp_path):
    """A reader of a service that asks for a token, or of one that asks for none."""

    @asynccontextmanager
    async def visit(**settings):
        app = create_app(Settings(DATABASE_URL=database_url, **settings))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", headers={"accept": "text/html"}
            ) as reader,
        ):
            yield reader

    (tmp_path / "token").write_text(SECRET)
    return {"asking": lambda: visit(auth="token", token_file=tmp_path / "token"), "open": visit}


@pytest.mark.parametrize("form", [{"token": "", "next": "/jobs"}, {"token": " \t"}, {}])
async def test_an_empty_token_is_answered_by_a_sentence_on_the_form(visiting, form):
    async with visiting["asking"]() as reader:
        answer = await reader.post("/login", data=form)
    assert answer.status_code == 401
    assert f'<p role="alert">{NOT_GIVEN}</p>' in answer.text
    assert 'name="token"' in answer.text


async def test_going_on_without_a_token_leads_to_a_form_that_says_more(visiting):
    async with visiting["asking"]() as reader:
        first = (await reader.get("/login?next=/jobs")).text
        assert '<a href="/jobs">Continue without a token</a> to the public pages.' in first
        assert "for people with a token" not in first
        second = await reader.get("/jobs")
    assert second.status_code == 401
    assert "This page needs a token of this service." in second.text
    assert "Continue" not in second.text  # it would lead to the same form


async def test_where_no_token_is_needed_a_wrong_one_is_told_beside_that(visiting):
    async with visiting["open"]() as reader:
        for given, said in (("", NOT_GIVEN), ("x", "This is not a token of this service")):
            text = unescape((await reader.post("/login", data={"token": given, "next": "/jobs"})).text)
            assert "needs no token" in text
            assert said in text
            assert '<a href="/jobs">Continue</a>' in text
            assert 'name="token"' not in text
