"""Which software changed on a machine between two reports, whenever they came and whatever else the machine told."""

import asyncio
from uuid import UUID, uuid4

import pytest

from pullback_service.machines.software import differing_software, software_under

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
    assert software.between(one, other) == there
    assert software.between(third, other) == there
    assert software.between(one, third) == ""  # changed, and changed back


async def test_what_makes_no_arrays_and_what_another_machine_told_is_no_other_software(client, session, measured):
    one, there, other, unknown = await upload(
        client,
        measured(1, numpy="2.4.0", kernel="6.1"),
        measured(1, numpy="1.26.4", machine="another"),
        measured(2, numpy="2.4.0", kernel="6.2"),
        measured(2, numpy="2.5.0", machine="another"),
    )
    software = await software_under(session, [one, there, other])
    assert software.between(one, other) == ""
    assert software.between(one, there) == ""
    assert software.between(there, unknown) == ""
    assert software.between(one, uuid4()) == ""


async def test_several_changes_are_told_as_one_and_facts_untold_as_such(client, session, measured):
    first, *_, last = await upload(
        client,
        measured(1),
        measured(2, numpy="2.4.0"),
        measured(3, numpy="2.4.0", scipy="1.15"),
        measured(4, numpy="2.5.0"),
    )
    software = await software_under(session, [first, last])
    assert software.between(first, last) == "numpy not told, then 2.5.0"


async def test_reports_that_come_at_once_are_told_apart(client, session, measured):
    uploads = [measured(number, numpy=f"2.{number % 2}.0") for number in range(1, 7)]
    answers = await asyncio.gather(*(client.post("/api/v1/reports", json=report) for report in uploads))
    assert {answer.status_code for answer in answers} == {201}
    ids = [UUID(report["id"]) for report in uploads]
    software = await software_under(session, ids)
    assert software.between(ids[0], ids[1]) == "numpy 2.1.0, then 2.0.0"
    assert software.between(ids[0], ids[2]) == ""
    assert software.between(ids[4], ids[5]) == "numpy 2.1.0, then 2.0.0"


def test_facts_of_two_reports_are_told_alike():
    assert differing_software({"numpy": "1.26.4", "kernel": "6.1"}, {"numpy": "2.4.0"}) == "numpy 1.26.4, then 2.4.0"
    assert differing_software({"numpy": "2.4.0"}, {"numpy": "2.4.0", "driver": "570"}) == ""
