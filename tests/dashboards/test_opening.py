"""A page in two pieces: what is sent before it has been read, and what becomes of what fails behind that."""

import asyncio
import gc
import gzip

import httpx
import pytest
from fastapi import FastAPI, Request

from pullback_dashboards import errors
from pullback_dashboards.choices import Empty
from pullback_dashboards.compressing import Compressed
from pullback_dashboards.opening import opened
from pullback_dashboards.rendering import opening, page
from pullback_service import problems
from pullback_service.errors import NotFoundError

pytestmark = pytest.mark.anyio

NOTHING = Empty("Nothing is measured yet", ("The first report makes one.",), None)


@pytest.fixture
def anyio_backend():
    return "asyncio"


def shown(request):
    return page(request, "nothing.html", title="A title", nothing=NOTHING)


def made(read):
    """An application whose pages `/page` and `/page.md` are read so."""
    app = FastAPI()
    problems.install(app)
    errors.style(app)
    app.add_middleware(Compressed)

    @app.get("/page")
    @app.get("/page.md")
    async def answered(request: Request):
        return await opened(request, lambda certain: read(request, certain))

    return app


async def at_once(request, certain):
    return shown(request)


async def asked(app, path, *, waits_for_opening=None, left=None, **headers):
    """Status and text, sent to somebody who looks at the first piece before more is read, and who may have `left`."""
    sent = []
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "http_version": "1.1",
        "headers": [(b"host", b"test"), *((name.encode(), value.encode()) for name, value in headers.items())],
        "scheme": "http", "server": ("test", 80), "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip
    left = left or asyncio.Event()

    async def receive():
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)
        if waits_for_opening is not None and message.get("body"):
            waits_for_opening.set()

    await app(scope, receive, send)
    if not sent:
        return None, {}, []
    start, *bodies = sent
    return start["status"], dict(start["headers"]), [body["body"] for body in bodies if body.get("body")]


async def test_the_opening_is_sent_before_the_page_has_been_read():
    was_sent = asyncio.Event()

    async def read(request, certain):
        certain("A title")
        await asyncio.wait_for(was_sent.wait(), 10)  # nothing is read before somebody has the opening
        return shown(request)

    app = made(read)
    status, headers, pieces = await asked(app, "/page", waits_for_opening=was_sent, accept="text/html")
    _, whole_headers, whole = await asked(made(at_once), "/page", accept="text/html")
    assert status == 200
    assert b"pullback.css" in pieces[0].splitlines()[-1]
    assert b"".join(pieces) == b"".join(whole)  # the same page, to the letter
    security = b"content-security-policy"
    assert headers[security] == whole_headers[security]
    assert b"content-length" not in headers


async def test_each_piece_is_compressed_so_that_it_can_be_read_when_it_comes():
    was_sent = asyncio.Event()

    async def read(request, certain):
        certain("A title")
        await asyncio.wait_for(was_sent.wait(), 10)
        return shown(request)

    app = made(read)
    accepted = {"accept": "text/html", "accept-encoding": "gzip"}
    _, headers, pieces = await asked(app, "/page", waits_for_opening=was_sent, **accepted)
    _, _, whole = await asked(made(at_once), "/page", accept="text/html")
    assert headers[b"content-encoding"] == b"gzip"
    reader = gzip.zlib.decompressobj(31)
    first = reader.decompress(pieces[0])
    assert b"pullback.css" in first
    assert first + reader.decompress(b"".join(pieces[1:])) == b"".join(whole)
    assert reader.eof


@pytest.mark.parametrize("failing", [NotFoundError("There is no page 9."), ZeroDivisionError()])
async def test_what_fails_before_the_page_is_certain_has_its_own_status(failing):
    async def read(request, certain):
        raise failing

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(made(read), raise_app_exceptions=False), base_url="http://test"
    ) as client:
        answer = await client.get("/page", headers={"accept": "text/html"})
    assert answer.status_code == (404 if isinstance(failing, NotFoundError) else 500)


@pytest.mark.parametrize(
    ("failing", "told"),
    [
        (NotFoundError("The report is gone."), "The report is gone."),
        (ZeroDivisionError("never told"), "its logs say why"),
    ],
)
async def test_what_fails_behind_the_opening_is_told_in_the_page(failing, told):
    async def read(request, certain):
        certain("A title")
        await asyncio.sleep(0.01)
        raise failing

    status, _, pieces = await asked(made(read), "/page", accept="text/html")
    text = b"".join(pieces).decode()
    assert status == 200
    assert told in text
    assert "never told" not in text
    assert text.count("<!doctype html>") == 1
    assert text.rstrip().endswith("</html>")


async def test_an_error_of_which_telling_fails_is_told_as_an_unexpected_one():
    class StrangeError(Exception):
        pass

    async def read(request, certain):
        certain("A title")
        await asyncio.sleep(0.01)
        raise StrangeError

    def tell(request, error):
        raise ZeroDivisionError

    app = made(read)
    app.add_exception_handler(StrangeError, tell)
    _, _, pieces = await asked(app, "/page", accept="text/html")
    text = b"".join(pieces).decode()
    assert "its logs say why" in text
    assert text.rstrip().endswith("</html>")


@pytest.mark.parametrize(("path", "accept"), [("/page.md", "text/html"), ("/page", "application/json")])
async def test_only_pages_open(path, accept):
    """Whoever reads no pages waits for the whole, with the status that it has."""

    async def read(request, certain):
        certain("A title")
        await asyncio.sleep(0.01)
        raise NotFoundError("Gone.")

    status, _, _ = await asked(made(read), path, accept=accept)
    assert status == 404


@pytest.mark.parametrize("before", ["anything is sent", "the rest is read"])
async def test_nothing_goes_on_for_somebody_who_left(before):
    left, ended = asyncio.Event(), asyncio.Event()
    if before == "anything is sent":
        left.set()

    async def read(request, certain):
        certain("A title")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)  # as a driver that asks Postgres to stop, and must not be interrupted in it
            ended.set()
            raise

    opened = asyncio.Event()
    asking = asyncio.create_task(asked(made(read), "/page", waits_for_opening=opened, left=left, accept="text/html"))
    if before == "the rest is read":
        await asyncio.wait_for(opened.wait(), 10)
        left.set()
    await asyncio.wait_for(asking, 10)
    await asyncio.wait_for(ended.wait(), 10)


async def test_nobody_is_told_of_an_error_behind_whoever_left():
    told, left, failed = [], asyncio.Event(), asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))
    left.set()

    async def read(request, certain):
        certain("A title")
        try:
            await asyncio.sleep(60)
        finally:
            failed.set()
            raise NotFoundError("Gone.")

    await asked(made(read), "/page", left=left, accept="text/html")
    await asyncio.wait_for(failed.wait(), 10)
    await asyncio.sleep(0)
    gc.collect()
    assert told == []


def test_the_opening_has_the_theme_that_the_reader_chose_and_no_other():
    def request(cookie):
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [(b"cookie", cookie)]}
        return Request(scope)

    assert '<html lang="en" data-theme="dark">' in opening(request(b"pullback_theme=dark"), "A <title>")
    assert '<html lang="en">' in opening(request(b'pullback_theme="><script>'), "A <title>")
    assert "A &lt;title&gt;" in opening(request(b"theme=dark"), "A <title>")
