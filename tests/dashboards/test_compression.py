"""What is compressed on its way out, and what is not."""

import gzip

import httpx
import pytest
from fastapi import FastAPI, Response
from fastapi.responses import StreamingResponse

from pullback_dashboards.compression import CompressionMiddleware

pytestmark = pytest.mark.anyio

TEXT = "ten million points " * 200


@pytest.fixture
def anyio_backend():
    return "asyncio"


def made():
    app = FastAPI()
    app.add_middleware(CompressionMiddleware)

    @app.get("/page")
    async def page() -> Response:
        return Response(TEXT, media_type="text/html", headers={"vary": "cookie"})

    @app.get("/short")
    async def short() -> Response:
        return Response("short", media_type="text/html")

    @app.get("/once")
    async def once() -> Response:
        return Response(TEXT, media_type="text/html", headers={"cache-control": "no-store"})

    @app.get("/image")
    async def image() -> Response:
        return Response(TEXT.encode(), media_type="image/png")

    @app.get("/api/v1/list")
    async def listed() -> Response:
        return Response(TEXT, media_type="application/json")

    @app.get("/stream")
    async def stream() -> Response:
        async def pieces():
            yield TEXT
            yield TEXT

        return StreamingResponse(pieces(), media_type="text/csv")

    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


async def raw(client, path, **headers):
    async with client.stream("GET", path, headers=headers) as answer:
        return answer, b"".join([piece async for piece in answer.aiter_raw()])


async def test_a_page_is_compressed_for_those_who_take_it():
    async with made() as client:
        answer, body = await raw(client, "/page", **{"accept-encoding": "br, gzip;q=0.8"})
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers["content-length"]) == len(body) < len(TEXT) / 10
        assert gzip.decompress(body).decode() == TEXT
        assert answer.headers["vary"] == "cookie, accept-encoding"
        for accepted in ("identity", "gzip;q=0", "br"):
            answer, body = await raw(client, "/page", **{"accept-encoding": accepted})
            assert "content-encoding" not in answer.headers
            assert body.decode() == TEXT
            assert answer.headers["vary"] == "cookie, accept-encoding"


@pytest.mark.parametrize("path", ["/short", "/once", "/image", "/api/v1/list", "/stream"])
async def test_what_is_short_secret_compressed_already_for_programs_or_in_pieces_is_left_alone(path):
    async with made() as client:
        answer, _ = await raw(client, path, **{"accept-encoding": "gzip"})
        assert "content-encoding" not in answer.headers


async def test_what_an_answer_weighs_is_not_always_the_same():
    async with made() as client:
        weights = {len((await raw(client, "/page", **{"accept-encoding": "gzip"}))[1]) for _ in range(30)}
        assert len(weights) > 3
