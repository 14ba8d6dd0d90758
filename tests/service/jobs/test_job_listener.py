"""A job calls the agents that can take it, one at a time."""

import asyncio
import json
import random
from contextlib import ExitStack

import pytest
from sqlalchemy import text

from pullback_service.jobs.job_listener import JobListener
from pullback_service.jobs.labels import contains
from pullback_service.jobs.offers import Abilities, Offer
from pullback_service.runtime import runtime_of


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


def able(labels=(), *, kinds=("run", "compare"), machine_id=1, accepts="trusted", projects=None):
    return Abilities(dict(labels), kinds, machine_id, accepts, projects)


@pytest.mark.parametrize(
    ("offer", "agent", "fits"),
    [
        (Offer({}), able(), True),
        (Offer({"gpu": 1}), able({"gpu": 1, "os": "linux"}), True),
        (Offer({"gpu": 1}), able({"gpu": 2}), False),
        (Offer({}, kind="compare"), able(kinds=["run"]), False),
        (Offer({}, kind="compare"), able(kinds=["compare"]), True),
        (Offer({}, trust="untrusted"), able(), False),
        (Offer({}, trust="untrusted"), able(accepts="untrusted"), False),
        (Offer({}, trust="untrusted"), able({"isolation": "sandbox"}, accepts="untrusted"), True),
        (Offer({}, trust="untrusted"), able({"isolation": "sandbox"}), False),
        (Offer({}, trust="trusted"), able(accepts="untrusted"), True),
        (Offer({}, machine_id=2), able(), False),
        (Offer({}, machine_id=1), able(), True),
        (Offer({}, project_id=3), able(projects=[4]), False),
        (Offer({}, project_id=3), able(projects=[3, 4]), True),
    ],
)
def test_an_agent_is_called_for_what_it_can_take(offer, agent, fits):
    assert offer.fits(agent) is fits


def called(waiters):
    return [waiter.called.is_set() for waiter in waiters]


@pytest.fixture
def listener():
    return JobListener(None)


@pytest.fixture
def make_waiters(listener):
    with ExitStack() as stack:

        def make_waiters(*labels):
            waiters = [stack.enter_context(listener.waiter()) for _ in labels]
            for waiter, of in zip(waiters, labels, strict=True):
                waiter.abilities = able(of)
            return waiters

        yield make_waiters


def test_the_longest_waiting_that_fits_is_called_and_no_other(listener, make_waiters):
    waiters = make_waiters({"gpu": 0}, {"gpu": 1}, {"gpu": 1})
    listener._call([Offer({"gpu": 1})])
    assert called(waiters) == [False, True, False]


def test_each_job_calls_one(listener, make_waiters):
    waiters = make_waiters({}, {}, {})
    listener._call([Offer({}), Offer({})])
    assert called(waiters) == [True, True, False]


def test_jobs_that_are_alike_call_as_many_as_they_are_and_no_more_than_may_be_on_their_feet(listener, make_waiters):
    waiters = make_waiters(*[{"gpu": number % 2} for number in range(40)])
    listener._call([Offer({"gpu": 1}, jobs=3), Offer({"gpu": 0}, jobs=100)])
    assert [number for number, waiter in enumerate(waiters) if waiter.called.is_set()] == [0, 1, 2, 3, 4, 5, 6, 8]


@pytest.mark.anyio
async def test_a_call_that_came_to_nothing_goes_to_the_next(listener, make_waiters):
    first, second = make_waiters({}, {})
    listener._call([Offer({})])
    assert await listener.wait(first, 1)  # called: it looks, finds nothing
    assert not listener._look.is_set()
    assert not await listener.wait(first, 0.01)  # and waits again
    assert listener._look.is_set()
    listener._call([Offer({})])
    assert called([first, second]) == [False, True]


@pytest.mark.anyio
async def test_a_ring_while_a_seat_is_looking_makes_it_look_again(listener, make_waiters):
    (waiter,) = make_waiters({})
    listener._call([Offer({})])
    assert await listener.wait(waiter, 1)
    listener._wake()
    listener._call([Offer({})])
    assert await listener.wait(waiter, 0.01)


@pytest.mark.anyio
async def test_many_agents_share_many_jobs(enroll, queue, waiting_agents):
    agents = [await enroll(machine=f"machine {number}", labels={"fleet": "a"}) for number in range(6)]
    claims = [asyncio.create_task(agent.claim(wait_s=20)) for agent in agents]
    await waiting_agents(len(agents))
    jobs = {(await queue(commit=number + 1))["id"] for number in range(6)}
    answers = await asyncio.gather(*claims)
    assert {answer.json()["job"]["id"] for answer in answers} == jobs


@pytest.mark.anyio
async def test_only_who_can_take_a_job_is_called_however_much_waits_for_others(
    client, enroll, queue, waiting_agents, database
):
    """Two hundred better jobs wait for a machine that is away, and agents that cannot take the one job are left in peace."""
    away = await enroll()
    others = [
        ({"labels": {"fleet": "b"}}, {}),
        ({"labels": {"fleet": "a"}}, {"kinds": ["run"]}),
        ({"labels": {"fleet": "a"}}, {"labels": {}}),
        ({"labels": {"fleet": "a"}}, {"kinds": ["run", "compare"]}),
    ]
    await queue(machine_id=away.machine_id, priority=100)
    async with database.writing.begin() as session:
        await session.execute(
            text(
                "INSERT INTO job (project_id, commit_id, suite, timeout_s, machine_id, priority)"
                " SELECT project_id, commit_id, suite, timeout_s, machine_id, priority FROM job, generate_series(2, 200)"
            )
        )
    agents = [(await enroll(**enrolment), asked) for enrolment, asked in others]
    waiting = [asyncio.create_task(agent.claim(wait_s=5, **asked)) for agent, asked in agents]
    listener = runtime_of(client._transport.app).get(JobListener)
    await waiting_agents(len(agents))
    reference = {"sha": "e" * 40}
    job = await queue(500, kind="compare", reference=reference, requires={"fleet": "a"})
    answer = await waiting[-1]
    assert answer.json()["job"]["id"] == job["id"]
    # Who was called once is in a later round; the others still sit as they sat down.
    assert [waiter.round for waiter in listener._waiters] == [0, 0, 0]
    for task in waiting[:-1]:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
