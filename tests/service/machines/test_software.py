"""Which software changed on a machine between two reports, whenever they came and whatever else the machine told."""

import asyncio
from itertools import chain
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from pullback_runners.machine import facts
from pullback_runners.peers import PEERS
from pullback_service.machines.software import (
    COUNTS_DEPEND_ON,
    COUNTS_OF_PEERS_DEPEND_ON,
    differing_software,
    software_at,
    software_under,
)
from pullback_service.models.commits import Commit
from pullback_service.models.machines import Machine
from pullback_service.statements import together

pytestmark = pytest.mark.anyio


@pytest.fixture
def measured(reports):
    def measured(commit=1, *, machine="box", **facts):
        told = reports.report(commit, machine=machine)
        told["machine"]["facts"] |= facts
        return told

    return measured


async def upload(client, *reports):
    """Each by itself, one after the other; their ids."""
    for report in reports:
        assert (await client.post("/api/v1/reports", json=report)).status_code == 201
    return [UUID(report["id"]) for report in reports]


async def test_what_changed_is_said_from_the_older_to_the_newer_commit_whichever_came_first(client, session, measured):
    old, new = {"numpy": "1.26.4", "python": "CPython 3.11.7"}, {"numpy": "2.4.0", "python": "CPython 3.14.0"}
    one, other, third = await upload(client, measured(1, **old), measured(3, **new), measured(2, **old))
    software = await software_under(session, [one, other, third])
    there = "python CPython 3.11.7, then CPython 3.14.0; numpy 1.26.4, then 2.4.0"
    assert software.between(one, other, "fused") == there
    assert software.between(third, other, "fused") == there
    assert software.between(one, third, "fused") == ""  # changed, and changed back


async def test_what_makes_no_arrays_and_what_another_machine_told_is_no_other_software(client, session, measured):
    one, there, other, unknown = await upload(
        client,
        measured(1, numpy="2.4.0", kernel="6.1"),
        measured(1, numpy="1.26.4", machine="another"),
        measured(2, numpy="2.4.0", kernel="6.2"),
        measured(2, numpy="2.5.0", machine="another"),
    )
    software = await software_under(session, [one, there, other])
    assert software.between(one, other, "fused") == ""
    assert software.between(one, there, "fused") == ""
    assert software.between(there, unknown, "fused") == ""
    assert software.between(one, uuid4(), "fused") == ""


async def test_several_changes_are_told_as_one_and_facts_untold_as_such(client, session, measured):
    first, *_, last = await upload(
        client,
        measured(1),
        measured(2, numpy="2.4.0"),
        measured(3, numpy="2.4.0", scipy="1.15"),
        measured(4, numpy="2.5.0"),
    )
    software = await software_under(session, [first, last])
    assert software.between(first, last, "fused") == "numpy unknown, then 2.5.0"


async def test_reports_that_come_at_once_are_told_apart(client, session, measured):
    uploads = [measured(number, numpy=f"2.{number % 2}.0") for number in range(1, 7)]
    answers = await asyncio.gather(*(client.post("/api/v1/reports", json=report) for report in uploads))
    assert {answer.status_code for answer in answers} == {201}
    ids = [UUID(report["id"]) for report in uploads]
    software = await software_under(session, ids)
    assert software.between(ids[0], ids[1], "fused") == "numpy 2.1.0, then 2.0.0"
    assert software.between(ids[0], ids[2], "fused") == ""
    assert software.between(ids[4], ids[5], "fused") == "numpy 2.1.0, then 2.0.0"


def test_facts_of_two_reports_are_told_alike():
    said = differing_software({"numpy": "1.26.4", "kernel": "6.1"}, {"numpy": "2.4.0"}, COUNTS_DEPEND_ON)
    assert said == "numpy 1.26.4, then 2.4.0"
    assert differing_software({"numpy": "2.4.0"}, {"numpy": "2.4.0", "driver": "570"}, COUNTS_DEPEND_ON) == ""


async def test_the_version_of_a_peer_is_software_of_that_peer_alone(client, session, measured):
    told = {"numpy": "2.4.0", "torch": "2.9", "jax": "0.8", "jaxlib": "0.8"}
    one, other, third = await upload(
        client,
        measured(1, **told),
        measured(2, **told | {"jaxlib": "0.9"}),
        measured(3, **told | {"numpy": "2.5.0", "torch": "2.10"}),
    )
    software = await software_under(session, [one, other, third])
    assert software.between(one, other, "jax") == "jaxlib 0.8, then 0.9"
    assert {software.between(one, other, variant) for variant in ("fused", "numpy", "torch")} == {""}
    assert software.between(one, third, "native") == "numpy 2.4.0, then 2.5.0"
    assert software.between(one, third, "torch-compile") == "numpy 2.4.0, then 2.5.0; torch 2.9, then 2.10"


def test_every_version_that_a_runner_tells_of_a_peer_is_some_peers():
    of_peers = set(chain.from_iterable(COUNTS_OF_PEERS_DEPEND_ON.values()))
    assert of_peers == set(facts.PEERS)
    assert COUNTS_OF_PEERS_DEPEND_ON.keys() == set(PEERS) - {"numpy"}  # it is ours as well


async def test_two_machines_are_told_apart_by_the_software_of_the_time(client, session, reports, measured):
    """What a machine told later is undone; what it told between is not."""
    one, _, other, _, there, _ = await upload(
        client,
        measured(1, numpy="2.1.0", kernel="6.1"),
        measured(3, numpy="2.2.0", kernel="6.2"),
        measured(2, numpy="2.3.0", kernel="6.3", autograd="1.7"),
        measured(4, scipy="1.15"),  # tells no NumPy any more
        measured(1, numpy="2.3.0", machine="another"),
        measured(5, numpy="2.9.0", machine="another"),
    )
    machines = {row[0]: row[1] for row in await session.execute(select(Machine.name, Machine.id))}
    commits = [await session.scalar(select(Commit.id).where(Commit.sha == reports.sha(at))) for at in (1, 2)]
    async with together(session) as ask:
        found = software_at(ask, commits, machines.values())
    software = found()
    assert set(software.machines) == set(machines.values())
    assert software.between(one, there, "fused") == "numpy 2.1.0 and 2.3.0"
    assert software.between(there, one, "fused") == "numpy 2.3.0 and 2.1.0"
    assert software.between(other, there, "fused") == ""
    assert software.between(there, other, "autograd") == "autograd unknown and 1.7"
    assert software.between(one, other, "fused") == "numpy 2.1.0, then 2.3.0"
    assert software.between(one, uuid4(), "fused") == ""
