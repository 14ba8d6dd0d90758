"""Connections that send half a head or half a body, or a byte of it now and then."""

import asyncio
import socket
import threading
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest
import uvicorn

from pullback_cli import http_protocol
from pullback_cli.http_protocol import (
    BODY_ROUND_BYTES,
    HEADS_AT_ONCE,
    SHARE,
    BoundedHeadProtocol,
    DropUnreadBody,
    Heads,
    Server,
)

MOST = 100
HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def answer(scope, receive, send):
    if scope["path"] == "/later":
        await asyncio.sleep(1)
    while scope["path"] not in {"/", "/dropped"} and (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def drop_some(scope, receive, send):
    await (DropUnreadBody(answer) if scope["path"] == "/dropped" else answer)(scope, receive, send)


@pytest.fixture
def refused():
    """Kinds of connections of which no request was read."""
    return []


@pytest.fixture
def heads():
    """State that the connections of the server share."""
    return Heads()


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


@pytest.fixture
def address(listening):
    """Where the server listens, also when it has ended."""
    return listening.getsockname()


@pytest.fixture
def end_events():
    """The calls that the server made at its end; a function in `let_go` is called by its event loop."""
    return SimpleNamespace(warned=threading.Event(), let_go=lambda: None)


@pytest.fixture
def server(monkeypatch, refused, heads, listening, end_events):
    monkeypatch.setattr(http_protocol, "HEAD_WITHIN_S", 0.3)
    monkeypatch.setattr(http_protocol, "BODY_ROUND_S", 0.3)
    monkeypatch.setattr(http_protocol, "UNREAD_S", 0.3)
    protocol = partial(BoundedHeadProtocol, most=MOST, heads=heads, refused=refused.append)
    config = uvicorn.Config(
        drop_some, port=0, lifespan="off", log_config=None, http=protocol, h11_max_incomplete_event_size=2**18
    )

    async def let_go():
        end_events.let_go()

    server = Server(config, heads=heads, warn=end_events.warned.set, let_go=let_go, drain_s=0)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    yield server
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def connect(server, address):
    opened = []

    def open_one(source="127.0.0.1"):
        opened.append(socket.create_connection(address, timeout=10, source_address=(source, 0)))
        return opened[-1]

    yield open_one
    for connection in opened:
        connection.close()


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
    while not refused:
        time.sleep(0.01)
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


CHUNKED = b"POST %s HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"


def test_what_follows_an_early_answer_is_never_read_as_a_request(connect, heads):
    connection = connect()
    connection.sendall(CHUNKED % b"/")
    assert connection.recv(1000).startswith(b"HTTP/1.1 204")
    connection.sendall(b"0\r\n\r\n" + HEAD)
    assert connection.recv(1000) == b""
    assert heads.held_bytes == 0


def test_a_body_behind_an_early_answer_has_a_bound(connect, refused, monkeypatch):
    monkeypatch.setattr(http_protocol, "UNREAD_S", 60)
    monkeypatch.setattr(http_protocol, "UNREAD_BYTES", 2**16)
    connection = connect()
    connection.sendall(post("/", 2**30))
    assert connection.recv(1000).startswith(b"HTTP/1.1 204")
    with pytest.raises(ConnectionError):
        connection.sendall(bytes(2**28))  # more than the system keeps
    assert refused == ["body-cut"]


def test_whoever_sends_all_before_looking_for_an_answer_has_it_and_the_connection(connect, monkeypatch):
    for seconds in ("UNREAD_S", "BODY_ROUND_S"):
        monkeypatch.setattr(http_protocol, seconds, 60)
    connection, large = connect(), post("/dropped", 2**25) + bytes(2**25)
    last = large.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
    for sent in (large, CHUNKED % b"/dropped" + b"0\r\n\r\n", HEAD, last):
        connection.sendall(sent)
        assert connection.recv(1000).startswith(b"HTTP/1.1 204")


def test_whoever_waits_to_be_asked_for_a_body_is_answered_without_it(connect, monkeypatch):
    monkeypatch.setattr(http_protocol, "UNREAD_S", 60)
    connection = connect()
    connection.sendall(post("/dropped", 9).replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
    assert connection.recv(1000).startswith(b"HTTP/1.1 204")


def test_a_body_that_is_dropped_has_bounds(connect, monkeypatch):
    monkeypatch.setattr(http_protocol, "BODY_ROUND_S", 60)
    connection = connect()
    connection.sendall(post("/dropped", 9))  # and nothing more: answered after UNREAD_S
    assert connection.recv(1000).startswith(b"HTTP/1.1 204")
    monkeypatch.setattr(http_protocol, "UNREAD_S", 60)
    monkeypatch.setattr(http_protocol, "UNREAD_BYTES", 2**16)
    connection = connect()
    connection.sendall(post("/dropped", 2**30) + bytes(2**17))
    assert connection.recv(1000).startswith(b"HTTP/1.1 204")


def test_a_request_on_its_way_by_a_kept_connection_is_answered_when_the_server_ends(
    connect, server, heads, monkeypatch
):
    monkeypatch.setattr(http_protocol, "LAST_REQUEST_S", 5)
    connection = connect()
    connection.sendall(HEAD)
    assert b"connection: close" not in connection.recv(1000)
    server.should_exit = True
    while not heads.are_last:
        time.sleep(0.001)
    connection.sendall(HEAD)
    answered = b"".join(iter(partial(connection.recv, 1000), b""))
    assert answered.startswith(b"HTTP/1.1 204")
    assert b"connection: close" in answered


def test_whoever_is_connected_when_the_server_stops_to_listen_is_answered(server, address, end_events):
    late = []

    def come():
        """Connect while the event loop cannot accept."""
        late.append(socket.create_connection(address, timeout=10))
        late[-1].sendall(HEAD)

    end_events.let_go = come
    server.should_exit = True
    assert end_events.warned.wait(10)
    while not late:
        time.sleep(0.001)
    with late[0]:
        assert late[0].recv(1000).startswith(b"HTTP/1.1 204")


def test_a_server_that_is_asked_to_end_goes_on_until_it_is_drained(connect, server, end_events):
    server._drain_s = 60
    server.should_exit = True
    assert end_events.warned.wait(10)
    connection = connect()
    for _ in range(2):
        connection.sendall(HEAD)
        assert b"connection: close" not in connection.recv(1000)
    server.force_exit = True  # as a second Ctrl-C does


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
