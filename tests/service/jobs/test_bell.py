"""A job calls the agents that can take it, one at a time."""

import asyncio
import json
import random
from contextlib import ExitStack

import pytest
from sqlalchemy import text

from pullback_service.jobs.bell import JobBell
from pullback_service.jobs.offers import Offer, contains


def some_value(chance, depth=2):
    kinds = [None, True, False, 0, 1, 2, 1.0, "", "a", "b"]
    if depth and chance.random() < 0.5:
        inner = [some_value(chance, depth - 1) for _ in range(chance.randrange(3))]
        return inner if chance.random() < 0.5 else dict(zip("ab", inner, strict=False))
    return chance.choice(kinds)


@pytest.mark.anyio
async def test_containing_is_what_postgres_says_it_is(session):
    chance = random.Random(1)
    pairs = [
        tuple({name: some_value(chance) for name in chance.sample("abc", chance.randrange(3))} for _ in "wp")
        for _ in range(500)
    ]
    said = await session.scalars(
        text(
            "SELECT CAST(w AS jsonb) @> CAST(p AS jsonb) FROM unnest(CAST(:wholes AS text[]), CAST(:parts AS text[])) WITH ORDINALITY AS t(w, p, n) ORDER BY n"
        ),
        {"wholes": [json.dumps(whole) for whole, _ in pairs], "parts": [json.dumps(part) for _, part in pairs]},
    )
    assert [contains(whole, part) for whole, part in pairs] == list(said)


def called(seats):
    return [seat.called.is_set() for seat in seats]


@pytest.fixture
def bell():
    return JobBell(None)


@pytest.fixture
def take_seats(bell):
    with ExitStack() as stack:

        def take_seats(*labels):
            seats = [stack.enter_context(bell.seat()) for _ in labels]
            for seat, of in zip(seats, labels, strict=True):
                seat.labels = of
            return seats

        yield take_seats


def test_the_longest_waiting_that_fits_is_called_and_no_other(bell, take_seats):
    seats = take_seats({"gpu": 0}, {"gpu": 1}, {"gpu": 1})
    bell._call([Offer({"gpu": 1})])
    assert called(seats) == [False, True, False]


def test_each_job_calls_one(bell, take_seats):
    seats = take_seats({}, {}, {})
    bell._call([Offer({}), Offer({})])
    assert called(seats) == [True, True, False]


@pytest.mark.anyio
async def test_a_call_that_came_to_nothing_goes_to_the_next(bell, take_seats):
    first, second = take_seats({}, {})
    bell._call([Offer({})])
    assert await bell.wait(first, 1)  # called: it looks, finds nothing
    assert not bell._look.is_set()
    assert not await bell.wait(first, 0.01)  # and waits again
    assert bell._look.is_set()
    bell._call([Offer({})])
    assert called([first, second]) == [False, True]


@pytest.mark.anyio
async def test_a_ring_while_a_seat_is_looking_makes_it_look_again(bell, take_seats):
    (seat,) = take_seats({})
    bell._call([Offer({})])
    assert await bell.wait(seat, 1)
    bell._ring()
    bell._call([Offer({})])
    assert await bell.wait(seat, 0.01)


@pytest.mark.anyio
async def test_many_agents_share_many_jobs(client, enroll, queue):
    agents = [await enroll(machine=f"machine {number}", labels={"fleet": "a"}) for number in range(6)]
    claims = [asyncio.create_task(agent.claim(wait_s=20)) for agent in agents]
    await asyncio.sleep(0.3)
    jobs = {(await queue(commit=number + 1))["id"] for number in range(6)}
    answers = await asyncio.gather(*claims)
    assert {answer.json()["job"]["id"] for answer in answers} == jobs
