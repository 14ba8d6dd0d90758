"""The proxy of builds, asked by its socket; servers are real ones."""

import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from pullback_cli.usage_errors import RefusalError
from pullback_runners.projects.packages import hosts_of_index
from pullback_runners.sandbox.proxy import BuildNetwork, BuildProxy


@pytest.fixture
def upstream():
    """A server that answers whatever it is sent with the same bytes, and with more after a line `more`."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            while True:
                try:
                    way, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=echo, args=(way,), daemon=True).start()

        def echo(way):
            with way, suppress(OSError):
                while piece := way.recv(1 << 16):
                    way.sendall(piece * (1000 if piece == b"more" else 1))

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@contextmanager
def _asked(proxy, head):
    with socket.socket(socket.AF_UNIX) as way:
        way.settimeout(20)
        way.connect(str(proxy.file))
        way.sendall(head)
        yield way


def _all(way):
    found = b""
    while piece := way.recv(1 << 16):
        found += piece
    return found


@pytest.fixture
def proxy(tmp_path, upstream):
    with BuildProxy(tmp_path / "builds", BuildNetwork([f"127.0.0.1:{upstream}"], 100_000)) as proxy:
        yield proxy


def test_a_tunnel_to_a_listed_host_passes_bytes_both_ways(proxy, upstream):
    with _asked(proxy, f"CONNECT 127.0.0.1:{upstream} HTTP/1.1\r\nHost: x\r\n\r\n".encode()) as way:
        assert way.recv(100) == b"HTTP/1.1 200 connected\r\n\r\n"
        way.sendall(b"hello")
        assert way.recv(100) == b"hello"
        way.shutdown(socket.SHUT_WR)
        assert _all(way) == b""
    assert proxy.said == []
    assert proxy.file.stat().st_mode & 0o777 == 0o600


def test_a_plain_request_goes_to_its_host_without_the_hosts_name_in_its_line(proxy, upstream):
    with _asked(proxy, f"GET http://127.0.0.1:{upstream}/simple/?q=1 HTTP/1.1\r\nHost: h\r\n\r\n".encode()) as way:
        way.shutdown(socket.SHUT_WR)
        assert _all(way) == b"GET /simple/?q=1 HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"CONNECT other.example:443 HTTP/1.1\r\n\r\n", "other.example"),
        (b"CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", "127.0.0.1"),
        (b"CONNECT 127.0.0.1:5432 HTTP/1.1\r\n\r\n", "127.0.0.1:5432"),
        (b"GET http://other.example/ HTTP/1.1\r\n\r\n", "other.example"),
        (b"GET http://user:secret@other.example./ HTTP/1.1\r\n\r\n", "other.example"),
    ],
)
def test_a_host_that_is_not_listed_is_refused_in_a_sentence_with_the_option(proxy, head, name):
    sentence = f"builds may not reach {name}: to allow it, start the agent with --build-host {name}"
    with _asked(proxy, head) as way:
        answer = _all(way).decode()
    assert answer.splitlines()[0] == f"HTTP/1.1 403 {sentence}"
    assert answer.splitlines()[-1] == sentence
    assert proxy.said == [sentence]


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT a$b:443 HTTP/1.1\r\n\r\n",
        b"GET /etc/passwd HTTP/1.1\r\n\r\n",
        b"GET file:///etc/passwd HTTP/1.1\r\n\r\n",
        b"\xff\xfe\r\n\r\n",
        b"CONNECT a:99999999 HTTP/1.1\r\n\r\n",
        b"x" * 100_000,
    ],
)
def test_what_is_no_request_reaches_nobody_and_the_proxy_goes_on(proxy, upstream, head):
    with _asked(proxy, head) as way:
        way.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            assert not _all(way).startswith(b"HTTP/1.1 2")
    assert proxy.said == []
    test_a_tunnel_to_a_listed_host_passes_bytes_both_ways(proxy, upstream)


def test_what_reaches_the_bound_ends_all_connections_and_is_said(proxy, upstream):
    head = f"CONNECT 127.0.0.1:{upstream} HTTP/1.1\r\n\r\n".encode()
    received = 0
    with _asked(proxy, head) as idle, _asked(proxy, head) as way:
        try:
            for _ in range(1000):
                way.sendall(b"more")
                if not (piece := way.recv(1 << 16)):
                    break
                received += len(piece)
        except ConnectionError:
            pass
        assert received < 100_000 + (2 << 16)
        with suppress(ConnectionError):
            assert _all(idle) == b"HTTP/1.1 200 connected\r\n\r\n"
    with _asked(proxy, head) as way:
        assert b"--build-gib" in _all(way).splitlines()[0]
    assert len(proxy.said) == 1
    assert "GiB sent and received" in proxy.said[0]


def test_nothing_of_it_is_left(tmp_path, upstream):
    before = threading.active_count()
    with BuildProxy(tmp_path / "builds", BuildNetwork([f"127.0.0.1:{upstream}"], 100_000)) as proxy:
        head = f"CONNECT 127.0.0.1:{upstream} HTTP/1.1\r\n\r\n".encode()
        with _asked(proxy, head) as way:
            way.recv(100)
    assert not proxy.file.exists()
    assert threading.active_count() <= before + 1  # the upstream's own


def test_hosts_are_those_that_pip_and_uv_are_configured_with(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:secret@packages.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://more.example:8080/simple https://again.example/")
    monkeypatch.setenv("UV_INDEX", "named=https://uv.example/simple file:///srv/wheels")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config" / "uv").mkdir(parents=True)
    (tmp_path / ".config" / "uv" / "uv.toml").write_text('[[index]]\nurl = "https://of-a-file.example/simple"\n')
    found = hosts_of_index()
    assert {"packages.example", "more.example:8080", "again.example", "uv.example", "of-a-file.example"} <= set(found)
    assert not [host for host in found if "secret" in host or "wheels" in host]


def test_an_agent_without_an_index_or_without_a_sandbox_says_what_to_do(monkeypatch, tmp_path):
    from pullback_cli.agent import agent

    monkeypatch.setattr("pullback_runners.projects.packages.hosts_of_index", list)
    asked = {"server": "http://127.0.0.1:1", "data": tmp_path, "least_free_gib": 5.0, "build_gib": 8.0}
    with pytest.raises(RefusalError, match=r"--build-network: neither pip nor uv .* name its hosts with --build-host"):
        agent(**asked, isolation="sandbox", build_network=True)
    with pytest.raises(RefusalError, match="--build-host: only a sandbox has no network"):
        agent(**asked, build_host=["packages.example"])
