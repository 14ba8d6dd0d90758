"""Texts in an address are bounded and may be names, over the real application: pages repeat theirs in every link."""

import socket
import time

import httpx
import pytest
from tests.dashboards.browser.conftest import SHAS
from tests.dashboards.browser.test_formats import DENSE, text_of

PAGES = (
    "/", "/explore", "/compare", "/jobs", "/fleet", "/boards", "/settings", "/help", "/projects/pullback/explore",
    f"/projects/pullback/compare?head={SHAS[-1]}", DENSE, f"/projects/pullback/commits/{SHAS[-1]}",
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", ["q", "machine", "whatever"])
def test_a_text_of_sixty_thousand_letters_is_refused_in_one_sentence(base, page, name):
    address = f"{base}{page}{'&' if '?' in page else '?'}{name}={'a' * 60_000}"
    answer = httpx.get(address, headers={"accept": "text/html"})
    assert answer.status_code == 422
    sentence = f"'{name}' in the address has 60,000 characters; the limit is 200: shorten it."
    assert text_of(answer.text).count(sentence) == 1
    assert "Back to the overview" in answer.text
    assert len(answer.content) < 4_000


def test_many_short_texts_are_bounded_together_and_names_as_their_values(base):
    many = "&".join(f"open={'a' * 190}{number}" for number in range(100))
    assert "The query of the address has 19,590 characters" in text_of(httpx.get(f"{base}/?{many}").text)
    name = "param." + "n" * 300
    answer = httpx.get(f"{base}/projects/pullback/explore.json?{name}=1")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("'param.nnn")
    assert len(answer.content) < 1_000


@pytest.mark.parametrize("address", ["/?suite=%00", "/?device=a%00", "/jobs?project=%00", "/jobs?suite=%00&page=1"])
def test_a_text_that_no_name_can_be_is_refused_before_the_page_opens(base, address):
    answer = httpx.get(f"{base}{address}", headers={"accept": "text/html"})
    assert answer.status_code == 422
    assert "contains a NUL character (%00): remove it." in text_of(answer.text)
    assert "\0" not in answer.text


def test_what_pages_write_themselves_is_read(base):
    pinned = f"{DENSE}?case=dense_bias_act%5Bn%3D100%2Cact%3Dtanh%2Cf4%2Ccpu%5D&note={'a' * 2_000}"
    assert httpx.get(f"{base}/boards/pin", params={"chart": pinned}).status_code == 200
    assert httpx.get(f"{base}/login", params={"next": pinned}).status_code == 200
    label = f"dense_bias_act[note={'a' * 1_000}]"
    assert "There is no case" in httpx.get(base + DENSE, params={"case": label}).text
    assert httpx.get(f"{base}/projects/pullback/explore", params={"split": "param." + "n" * 200}).status_code == 200
    assert httpx.get(f"{base}/", params={"q": "a" * 200}).status_code == 200


def test_an_address_that_comes_in_pieces_is_answered_as_one_that_comes_whole(base):
    host, port = base.removeprefix("http://").split(":")
    head = f"GET /?q={'a' * 60_000} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n".encode()
    with socket.create_connection((host, int(port))) as connection:
        for part in (head[:20_000], head[20_000:40_000], head[40_000:]):
            connection.sendall(part)
            time.sleep(0.05)
        answer = connection.makefile("rb").readline()
    assert answer.startswith(b"HTTP/1.1 422 ")
