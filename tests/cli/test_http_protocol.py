"""Connections that send half a head or half a body, or a byte of it now and then."""

import asyncio
import socket
import threading
import time
from contextlib import suppress
from functools import partial

import pytest
import uvicorn

from pullback_cli import http_protocol
from pullback_cli.http_protocol import BODY_ROUND_BYTES, HEADS_AT_ONCE, SHARE, BoundedHeadProtocol, Heads

MOST = 100
HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def answer(scope, receive, send):
    if scope["path"] == "/later":
        await asyncio.sleep(1)
    while scope["path"] != "/" and (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


@pytest.fixture
def refused():
    """Kinds of connections of which no request was read."""
    return []


@pytest.fixture
def heads():
    """State that the connections of the server share."""
    return Heads()


@pytest.fixture
def connect(monkeypatch, refused, heads):
    monkeypatch.setattr(http_protocol, "HEAD_WITHIN_S", 0.3)
    monkeypatch.setattr(http_protocol, "BODY_ROUND_S", 0.3)
    protocol = partial(BoundedHeadProtocol, most=MOST, heads=heads, refused=refused.append)
    config = uvicorn.Config(
        answer, port=0, lifespan="off", log_config=None, http=protocol, h11_max_incomplete_event_size=2**18
    )
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    opened = []

    def open_one(address="127.0.0.1"):
        opened.append(socket.create_connection(listening.getsockname(), timeout=10, source_address=(address, 0)))
        return opened[-1]

    yield open_one
    for connection in opened:
        connection.close()
    server.should_exit = True
    thread.join(10)
    listening.close()


@pytest.mark.parametrize(("sent", "kind"), [(b"", "nothing-sent"), (HEAD[:-2], "head-cut")])
def test_half_a_head_is_cut_off_and_counted(connect, refused, sent, kind):
    connection = connect()
    connection.sendall(sent)
    assert connection.recv(1) == b""
    assert refused == [kind]


def test_whoever_leaves_within_a_head_and_what_is_no_request_are_counted_and_whole_requests_are_not(connect, refused):
    connect().close()
    connection = connect()
    connection.sendall(b"no request\r\n\r\n")
    assert connection.recv(100).startswith(b"HTTP/1.1 400")
    left = connect()
    left.sendall(HEAD)
    assert left.recv(100).startswith(b"HTTP/1.1 204")
    left.sendall(HEAD[:9])
    left.close()
    while len(refused) < 2:
        time.sleep(0.01)
    assert refused == ["no-http", "head-left"]


def test_bytes_now_and_then_gain_no_time(connect):
    connection, began = connect(), time.monotonic()
    connection.settimeout(0.02)
    for byte in HEAD[:-2] * 10:
        connection.sendall(bytes([byte]))
        with suppress(TimeoutError):
            if not connection.recv(1):
                break
    assert time.monotonic() - began < 5


def post(path, length):
    return f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n\r\n".encode()


@pytest.mark.parametrize("path", ["/read", "/"])  # also behind an answer that did not wait for the body
@pytest.mark.parametrize("before", [b"", HEAD])  # also behind a request that came with it
def test_half_a_body_is_cut_off_and_counted(connect, refused, path, before):
    connection = connect()
    connection.sendall(before + post(path, 9) + b"x")
    answered = b"".join(iter(partial(connection.recv, 1000), b""))
    assert answered.count(b"HTTP/1.1 204") == (before != b"") + (path == "/")
    assert refused == ["body-cut"]


def test_bytes_of_a_body_now_and_then_gain_no_time(connect, refused):
    connection, began = connect(), time.monotonic()
    connection.sendall(post("/read", 10_000))
    connection.settimeout(0.02)
    with suppress(OSError):  # it may be closed while a byte is on its way
        while time.monotonic() - began < 30:
            connection.sendall(b"x")
            with suppress(TimeoutError):
                if not connection.recv(1):
                    break
    assert time.monotonic() - began < 10
    assert refused == ["body-cut"]


def test_a_body_may_come_slowly(connect, refused, monkeypatch):
    monkeypatch.setattr(http_protocol, "BODY_ROUND_S", 2)
    connection = connect()
    connection.sendall(post("/read", 6 * BODY_ROUND_BYTES))
    for _ in range(6):
        connection.sendall(bytes(BODY_ROUND_BYTES))
        time.sleep(0.5)
    assert connection.recv(100).startswith(b"HTTP/1.1 204")
    assert refused == []


def test_whoever_waits_for_us_to_read_a_body_is_waited_for(connect, refused):
    connection = connect()
    connection.sendall(post("/later", 2**25) + bytes(2**25))
    assert connection.recv(100).startswith(b"HTTP/1.1 204")
    assert refused == []


def test_the_next_request_of_a_connection_has_its_own_time(connect):
    connection = connect()
    for _ in range(3):
        connection.sendall(HEAD)
        assert connection.recv(100).startswith(b"HTTP/1.1 204")
        time.sleep(0.2)  # idle, which is no head
    connection.sendall(HEAD[:9])
    assert connection.recv(1) == b""


def test_one_connection_too_many_is_closed_and_counted_and_the_others_go_on(connect, refused, monkeypatch):
    monkeypatch.setattr(http_protocol, "HEAD_WITHIN_S", 30)
    several = [connect() for _ in range(MOST)]  # which are accepted in this order
    assert connect().recv(1) == b""
    assert refused == ["too-many-connections"]
    for connection in several:
        connection.sendall(HEAD)
        assert connection.recv(100).startswith(b"HTTP/1.1 204")


def test_long_heads_have_a_bound_together_and_short_ones_are_read_all_the_same(connect, refused, heads, monkeypatch):
    monkeypatch.setattr(http_protocol, "HEAD_WITHIN_S", 30)
    monkeypatch.setattr(http_protocol, "MOST_HEAD_BYTES", 2**18)
    long, held = b"GET /" + bytes([97]) * 2**16, []
    for _ in range(3):
        held.append(connect())
        held[-1].sendall(long)
        while heads.held_bytes < len(held) * len(long):
            time.sleep(0.001)
    cut, short = connect(), connect()
    cut.sendall(long)
    assert cut.recv(1) == b""
    assert refused == ["heads-too-long"]
    for half in (HEAD[:20], HEAD[20:]):
        short.sendall(half)
    assert short.recv(100).startswith(b"HTTP/1.1 204")
    held[0].sendall(b" HTTP/1.1\r\nHost: here\r\n\r\n")  # one that was there before is read to its end
    assert held[0].recv(100).startswith(b"HTTP/1.1 204")
    for each in held:
        each.close()
    while heads.held_bytes:
        time.sleep(0.001)


def test_one_address_has_a_share_of_the_connections_and_a_proxy_all_of_them(connect, refused, heads):
    share = MOST // SHARE
    of_one = [connect("127.0.0.2") for _ in range(share)]
    assert connect("127.0.0.2").recv(1) == b""
    assert refused == ["connections-of-one-address"]
    of_proxy = [connect() for _ in range(share + 1)]  # 127.0.0.1 is trusted
    for each in (of_one[0], connect("127.0.0.3"), of_proxy[-1]):
        each.sendall(HEAD)
        assert each.recv(100).startswith(b"HTTP/1.1 204")
    for each in of_one:
        each.close()
    while "127.0.0.2" in heads.of_network:
        time.sleep(0.001)


def test_heads_that_come_together_are_read_a_few_at_a_time_and_the_newest_first():
    async def come(*heads):
        turns, read, loop, rounds = Heads(), [], asyncio.get_running_loop(), []
        for head in heads:
            turns.take(loop, partial(read.append, head))
        while read:
            rounds.append([*read])
            read.clear()
            await asyncio.sleep(0)
        return rounds

    most = HEADS_AT_ONCE
    numbers = range(2 * most + 3)
    assert asyncio.run(come(*numbers)) == [[*numbers[:most]], [*numbers[:most:-1]][:most], [most + 2, most + 1, most]]


def test_requests_that_come_together_are_all_answered(connect, monkeypatch):
    monkeypatch.setattr(http_protocol, "HEAD_WITHIN_S", 30)
    many = [connect() for _ in range(MOST)]
    for half in (HEAD[:20], HEAD[20:]):
        for connection in many:
            connection.sendall(half)
    for connection in many:
        assert connection.recv(100).startswith(b"HTTP/1.1 204")
