import html

import httpx
import pytest
from starlette.requests import Request

from pullback_cli.app import create_app
from pullback_dashboards.address_errors import error_view
from pullback_dashboards.errors import wants_page
from pullback_service.settings import Settings


@pytest.fixture
def anyio_backend():
    return "asyncio"


def request(path, accept="text/html"):
    return Request(
        {"type": "http", "method": "GET", "path": path, "headers": [(b"accept", accept.encode())], "query_string": b""}
    )


@pytest.mark.parametrize(
    ("path", "accept", "page"),
    [
        ("/", "text/html,*/*", True),
        ("/nothing", "*/*", True),
        ("/overview.json", "text/html", False),
        ("/jobs.csv", "text/html", False),
        ("/feed.atom", "*/*", False),
        ("/api/v1/jobs", "text/html", False),
        ("/metrics", "text/html", False),
        ("/nothing", "application/json", False),
    ],
)
def test_only_a_page_that_is_asked_for_fails_as_a_page(path, accept, page):
    assert wants_page(request(path, accept)) is page


@pytest.mark.parametrize("broken", [None, [], "text", {"title": 3}, {"errors": "x"}, {"instead": [3, {"text": "a"}]}])
def test_an_answer_that_is_no_problem_document_still_makes_a_page(broken):
    view = error_view(request("/"), 500, broken)
    assert (view.title, view.sentence) == ("Error 500", "The service gave no further reason.")
    assert [one.address for one in view.onward] == ["/"]


async def failing(request):
    raise RuntimeError("nobody expected this")


@pytest.mark.anyio
@pytest.mark.parametrize(("accept", "kind"), [("text/html", "text/html"), ("application/json", "application/problem")])
async def test_what_nobody_expected_is_a_page_where_one_was_asked_for(accept, kind):
    app = create_app(Settings(DATABASE_URL="postgresql://nowhere/nothing"))
    app.router.add_route("/fails", failing)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get("/fails", headers={"accept": accept})
    assert answer.status_code == 500
    assert answer.headers["content-type"].startswith(kind)
    assert "nobody expected" not in answer.text
    assert "x-request-id" in answer.headers


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("method", "path", "form", "status", "allowed"),
    [
        (
            "POST",
            "/login",
            "&".join(f"a{number}=1" for number in range(30)),
            401,
            None,
        ),  # more fields than any form has
        ("TRACE", "/help", None, 405, "GET"),
    ],
)
async def test_requests_that_no_page_makes_are_answered_as_pages(
    database_url, tmp_path, method, path, form, status, allowed
):
    (tmp_path / "token").write_text("a-secret-long-enough-to-be-one")
    app = create_app(Settings(DATABASE_URL=database_url, auth="token", token_file=tmp_path / "token"))
    headers = {"accept": "text/html"} | ({"content-type": "application/x-www-form-urlencoded"} if form else {})
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        answer = await client.request(method, path, content=form, headers=headers)
    assert (answer.status_code, answer.headers.get("allow")) == (status, allowed)
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("address", "said"),
    [
        (
            "/projects/demo/workloads/tanh?y=log",
            "query.y: Give 'relative', 'parent', 'first' or 'absolute' instead of 'log'.",
        ),
        ("/projects/demo/explore?last=0", "query.last: Give 1 or more instead of 0."),
        (
            "/projects/demo/compare?head=%20a",
            "query.head: A name must be one line without control characters, and without spaces",
        ),
        ("/projects/demo/compare?head=a&merge_base=maybe", "query.merge_base: Give true or false instead of 'maybe'."),
        (
            "/jobs?origin=mars",
            "query.origin: Give 'asked', 'backfill', 'idle', 'confirm', 'bisect' or 'anchor' instead of 'mars'.",
        ),
        ("/jobs?page=two", "query.page: Give a whole number instead of 'two'."),
        ("/reports/last", "path.report_id: Give an id like"),
    ],
)
async def test_a_wrong_parameter_is_told_with_what_was_given_and_what_may_be(database_url, address, said):
    app = create_app(Settings(DATABASE_URL=database_url))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        answer = await client.get(address, headers={"accept": "text/html"})
    assert answer.status_code == 422
    assert said in html.unescape(answer.text)
    assert "more)" not in answer.text
