"""Pages of other sites reach nothing through the browser of somebody who runs this service."""

import pytest

from pullback_service.cross_site_requests import refusal


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:1", "localhost.", "[::1]:8000", "a.localhost"]
)
def test_loopback_names_are_ours(host):
    assert refusal("GET", {b"host": host.encode()}, local=True) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", "localhost@evil.example:1", "["]
)
def test_a_name_pointed_at_loopback_by_somebody_else_is_refused_even_to_read(host):
    assert "127.0.0.1 or localhost" in (refusal("GET", {b"host": host.encode()}, local=True) or "")
    assert refusal("GET", {b"host": host.encode()}, local=False) is None


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:8001", "http://127.0.0.1"])
def test_another_origin_may_read_but_not_write(origin):
    headers = {b"host": b"127.0.0.1:8000", b"origin": origin.encode()}
    assert refusal("GET", headers, local=True) is None
    assert "are refused" in (refusal("POST", headers, local=True) or "")


def test_our_own_pages_and_programs_write():
    host = {b"host": b"127.0.0.1:8000"}
    assert refusal("POST", host, local=True) is None
    assert refusal("POST", {**host, b"origin": b"http://127.0.0.1:8000"}, local=True) is None
    assert refusal("POST", {b"host": b"pullback.example", b"origin": b"https://pullback.example"}, local=False) is None
