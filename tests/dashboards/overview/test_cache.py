"""Results that are kept until the next upload."""

import asyncio

import pytest

from pullback_dashboards.overview.cache import KEPT_FOR_S, TimedCache

pytestmark = pytest.mark.anyio


async def test_what_several_ask_for_at_once_is_read_once():
    kept, reads = TimedCache(4), []

    async def read():
        reads.append(len(reads))
        await asyncio.sleep(0)
        return "the answer"

    assert await asyncio.gather(*(kept.get("key", read) for _ in range(6))) == ["the answer"] * 6
    assert len(reads) == 1


async def test_who_waited_reads_where_the_first_one_failed():
    kept, reads = TimedCache(4), []

    async def read():
        reads.append(len(reads))
        await asyncio.sleep(0)
        if len(reads) == 1:
            raise TimeoutError
        return "the answer"

    first, *others = await asyncio.gather(*(kept.get("key", read) for _ in range(3)), return_exceptions=True)
    assert isinstance(first, TimeoutError)
    assert others == ["the answer"] * 2
    assert len(reads) == 2


async def test_what_was_read_a_minute_ago_is_read_again():
    now = 0.0
    kept = TimedCache(4, clock=lambda: now)

    async def read():
        return now

    assert await kept.get("key", read) == 0.0
    now = KEPT_FOR_S - 1
    assert await kept.get("key", read) == 0.0
    now = KEPT_FOR_S
    assert await kept.get("key", read) == KEPT_FOR_S
