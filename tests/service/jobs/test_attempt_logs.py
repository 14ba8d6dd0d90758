"""Logs by byte offset: nothing lost, nothing doubled, everything readable while it grows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.anyio


@pytest.fixture
async def lease(enroll, queue):
    await queue()
    return await (await enroll()).take()


@pytest.fixture
def read(client, lease):
    async def read(offset=0, **params):
        job_id = lease.claim["job"]["id"]
        return await client.get(f"/api/v1/jobs/{job_id}/log", params={"offset": offset, **params})

    return read


async def test_pieces_follow_each_other(lease, read):
    assert (await lease.log(0, b"hello ")).json() == {"size": 6}
    assert (await lease.log(6, b"world")).json() == {"size": 11}
    response = await read()
    assert response.content == b"hello world"
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["pullback-next-offset"] == "11"
    assert response.headers["pullback-log-complete"] == "false"


async def test_the_same_piece_again_is_stored_once(lease, read):
    await lease.log(0, b"hello ")
    await lease.log(6, b"world")
    for offset, content in ((0, b"hello "), (6, b"world"), (3, b"lo wor")):
        response = await lease.log(offset, content)
        assert response.status_code == 200
        assert response.json() == {"size": 11}
    assert (await read()).content == b"hello world"


@pytest.mark.parametrize(("offset", "content"), [(12, b"gap"), (4, b"overlap beyond"), (0, b"other")])
async def test_what_does_not_continue_the_log_is_told_where_to_go_on(lease, offset, content):
    await lease.log(0, b"hello world")
    response = await lease.log(offset, content)
    assert response.status_code == 416
    assert response.json()["expected_offset"] == 11


async def test_an_empty_piece_asks_for_the_size(lease):
    await lease.log(0, b"hello")
    assert (await lease.log(5, b"")).json() == {"size": 5}


async def test_reading_goes_on_where_it_stopped(lease, read):
    await lease.log(0, b"hello ")
    await lease.log(6, b"world")
    assert (await read(3)).content == b"lo world"
    assert (await read(6)).content == b"world"
    assert (await read(11)).content == b""
    response = await read(12)
    assert response.status_code == 416
    assert response.json()["expected_offset"] == 11


async def test_a_log_is_complete_when_its_attempt_has_ended(lease, read):
    await lease.log(0, b"last words")
    await lease.fail("workload")
    assert (await read(4)).headers["pullback-log-complete"] == "true"


async def test_a_log_is_bounded(lease):
    assert (await lease.log(0, b"x" * 2**16)).status_code == 200
    assert (await lease.log(2**16, b"x")).status_code == 413
    assert (await lease.log(2**16, b"x" * (2**20 + 1))).status_code == 413


async def test_a_job_that_has_not_begun_has_an_empty_log(client, queue):
    job = await queue(commit=2)
    response = await client.get(f"/api/v1/jobs/{job['id']}/log")
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["pullback-log-complete"] == "false"
    assert (await client.get("/api/v1/jobs/999/log")).status_code == 404
    assert (await client.get(f"/api/v1/jobs/{job['id']}/log?attempt=4")).status_code == 404


def test_any_cut_of_any_bytes_is_read_back_whole(send):
    machine = {"fingerprint": "f", "name": "box"}
    agent = send("POST", "/api/v1/agents/enroll", json={"name": "a", "machine": machine}).json()["agent_id"]

    @settings(max_examples=10, deadline=None)
    @given(pieces=st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=6), start=st.integers(0, 50))
    def check(pieces, start):
        wanted = {"project": "p", "commit": {"sha": "a" * 40}, "suite": "s"}
        send("POST", "/api/v1/jobs", params={"force": True}, json=wanted)
        claim = send("POST", f"/api/v1/agents/{agent}/claim", json={}).json()
        url = f"/api/v1/jobs/{claim['job']['id']}"
        attempt = f"{url}/attempts/1"
        headers = {"Pullback-Lease": claim["lease_token"]}
        offset = 0
        for piece in pieces:
            for _ in range(2):
                response = send("PUT", f"{attempt}/log", params={"offset": offset}, content=piece, headers=headers)
                assert response.status_code == 200
            offset += len(piece)
        whole = b"".join(pieces)
        start = min(start, len(whole))
        assert send("GET", f"{url}/log", params={"offset": start}).content == whole[start:]
        send("POST", f"{attempt}/fail", json={"lease_token": claim["lease_token"], "kind": "cancelled"})

    check()
