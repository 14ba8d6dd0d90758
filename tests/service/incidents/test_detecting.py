"""From uploads to incidents, with a real database and a real worker."""

import random
from uuid import uuid4

import pytest

from pullback_service import worker

pytestmark = pytest.mark.anyio


def story(history):
    """Twelve commits: a count changes at 7, a pair is 30 % slower at 9, a gradient is wrong at 11."""
    documents = [
        history.commit(
            number,
            array_bytes=2048.0 if number >= 7 else 1024.0,
            wrong=("dense",) if number >= 11 else (),
        )
        for number in range(1, 13)
    ]
    documents[8] = history.paired(documents[8], 0.26, "slower")
    return documents


def told_as(details, reports):
    """Incidents by what they say: kind, state, the number of the commit, workloads."""
    numbers = {reports.sha(number): number for number in range(100)}
    return sorted(
        (
            numbers[each.reference.sha],
            numbers[each.commit.sha],
            each.incident.kind,
            each.incident.state,
            tuple(sorted({change.workload for change in each.changes})),
        )
        for each in details
    )


WHOLE_STORY = [
    (6, 7, "worse", "confirmed", ("lstm",)),
    (8, 9, "worse", "confirmed", ("lstm",)),
    (10, 11, "wrong_gradient", "confirmed", ("dense",)),
]


async def test_three_things_that_went_wrong_are_three_incidents_at_their_commits(history, reports):
    await history.upload(*story(history), look=True)
    assert told_as(await history.incidents(), reports) == WHOLE_STORY
    told = await history.told()
    assert [event for _, event in told] == ["confirmed"] * 3
    assert len({incident for incident, _ in told}) == 3


async def test_the_worker_looks_once_for_all_uploads_that_wait(history, reports, database_url):
    for document in story(history):
        await history.client.post("/api/v1/reports", json=document)
    await worker.run_once(database_url)
    assert told_as(await history.incidents(), reports) == WHOLE_STORY
    assert len(await history.told()) == 3


async def test_uploading_all_of_it_again_in_another_order_tells_nothing_more(history, reports):
    documents = story(history)
    await history.upload(*documents)
    before = await history.told()
    again = [document | {"id": str(uuid4())} for document in documents]
    random.Random(5).shuffle(again)
    await history.upload(*documents[::-1], *again, look=True)
    assert told_as(await history.incidents(), reports) == WHOLE_STORY
    assert await history.told() == before


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_order_of_uploads_decides_nothing(history, reports, seed):
    documents = story(history)
    random.Random(seed).shuffle(documents)
    await history.upload(*documents, look=True)
    assert told_as(await history.incidents(), reports) == WHOLE_STORY
