"""Two equal computers are two machines, series stay where they are, and a limited token describes nothing that others use."""

import asyncio
from uuid import UUID

import pytest
from sqlalchemy import select

from pullback_service.models import Report

pytestmark = pytest.mark.anyio

API = "/api/v1"


@pytest.fixture
def told(reports):
    """A report of one of several equal computers."""

    def tell(commit, host, *, name="box", project="demo", **facts):
        report = reports.report(commit, project=project)
        report["machine"] = {"fingerprint": "class", "name": name, "facts": {"cpu": "fast", **facts}}
        if host is not None:
            report["machine"]["host"] = host
        return report

    return tell


@pytest.fixture
def machines(client):
    async def listed():
        return [
            (each["id"], each["name"], each["host"]) for each in (await client.get(f"{API}/machines")).json()["items"]
        ]

    return listed


async def machine_of(client, report, **parts):
    """On which machine a report is stored."""
    answer = await client.post(f"{API}/reports", json=report, **parts)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


@pytest.fixture
def send(client, session):
    async def post(report, **parts):
        report_id = await machine_of(client, report, **parts)
        return await session.scalar(select(Report.machine_id).where(Report.id == UUID(report_id)))

    return post


async def test_equal_computers_are_two_machines_with_names_that_differ(send, told, machines):
    assert [await send(told(1, "a")), await send(told(1, "b")), await send(told(2, "a")), await send(told(2, "b"))] == [
        *(1, 2, 1, 2)
    ]
    assert await machines() == [(1, "box", "a"), (2, "box (2)", "b")]
    assert await send(told(3, "c")) == 3
    assert (await machines())[2] == (3, "box (3)", "c")


async def test_a_computer_that_is_renamed_leaves_its_name_to_others(send, told, machines):
    await send(told(1, "a"))
    await send(told(1, "b"))
    await send(told(2, "a", name="desk"))
    await send(told(2, "b", name="desk"))
    assert await machines() == [(1, "desk", "a"), (2, "desk (2)", "b")]


async def test_the_first_host_that_is_told_goes_on_with_the_series_of_its_class(client, send, told, machines):
    assert await send(told(1, None)) == 1
    assert await send(told(2, "a")) == 1  # an upgraded runner
    assert await send(told(2, "b")) == 2
    assert await send(told(3, None)) == 1  # an older one, which was always taken for this one
    assert await machines() == [(1, "box", "a"), (2, "box (2)", "b")]
    first = (await client.get(f"{API}/series/1/points")).json()["items"]
    assert [each["title"] for each in first] == ["Change 1", "Change 2", "Change 3"]


async def test_another_class_is_another_machine_though_the_host_is_the_same(send, told, machines):
    assert await send(told(1, "a")) == 1
    grown = told(2, "a")
    grown["machine"]["fingerprint"] = "with more memory"
    assert await send(grown) == 2
    assert await machines() == [(1, "box", "a"), (2, "box", "a")]


async def test_computers_that_report_at_once_are_told_apart(client, told, machines):
    uploads = [told(commit, host) for commit in (1, 2) for host in "abc"]
    answers = await asyncio.gather(*(client.post(f"{API}/reports", json=each) for each in uploads))
    assert {answer.status_code for answer in answers} == {201}
    assert sorted(host for _, _, host in await machines()) == ["a", "b", "c"]


async def test_a_machine_is_named_by_its_host_where_its_class_is_that_of_several(client, send, told):
    await send(told(1, "host-a"))
    await send(told(1, "host-b"))
    asked = {"project": "demo", "head": "main", "base_machine": "host-a", "head_machine": "host-b"}
    compared = await client.get(f"{API}/comparisons", params=asked)
    assert compared.status_code == 200, compared.text
    assert compared.json()["candidate"]["machine"] == "box (2)"
    refused = await client.get(f"{API}/comparisons", params={**asked, "base_machine": "class"})
    assert "2 machines are called 'class': give the host" in refused.json()["detail"]
    series = (await client.get(f"{API}/series", params={"machine": "host-b"})).json()["items"]
    assert {each["machine"] for each in series} == {"box (2)"}


async def test_what_is_known_of_a_computer_is_not_written_again(client, told, count_statements):
    await client.post(f"{API}/reports", json=told(1, "a"))
    await client.post(f"{API}/reports", json=told(1, "b"))
    async with count_statements() as statements:
        await client.post(f"{API}/reports", json=told(2, "b"))
        await client.post(f"{API}/reports", json=told(2, None, name="box"))
    assert not any(" machine SET" in str(each) for each in statements)


async def enroll(client, name, host, **parts):
    machine = {"fingerprint": "class", "name": "box", "host": host, "facts": {}}
    return await client.post(f"{API}/agents/enroll", json={"name": name, "machine": machine}, **parts)


async def with_code(admin, **asked):
    code = (await admin.post(f"{API}/enrolments", json=asked)).json()["code"]
    return {"headers": {"authorization": f"Bearer {code}"}}


async def test_an_agent_that_is_upgraded_stays_itself_also_where_another_computer_was_first(guarded, admin):
    agents = [(await enroll(guarded, name, None, **await with_code(admin))).json() for name in ("one", "two")]
    assert agents[0]["machine_id"] == agents[1]["machine_id"]
    again = []
    for host, name, known in zip("ab", ("one", "two"), agents, strict=True):
        own = {"headers": {"authorization": f"Bearer {known['secret']}"}}
        answer = await enroll(guarded, name, host, **own)
        assert answer.status_code == 201, answer.text
        again.append(answer.json())
    assert [each["agent_id"] for each in again] == [each["agent_id"] for each in agents]
    assert again[0]["machine_id"] == agents[0]["machine_id"] != again[1]["machine_id"]


async def test_equal_computers_work_at_the_same_time(client, told):
    for commit in (1, 2):
        wanted = {"project": "demo", "commit": told(commit, "a")["commit"], "suite": "quick"}
        assert (await client.post(f"{API}/jobs", json=wanted)).status_code == 201
    agents = [(await enroll(client, "agent", host)).json()["agent_id"] for host in "ab"]
    claims = [await client.post(f"{API}/agents/{agent}/claim", json={}) for agent in agents]
    assert [claim.status_code for claim in claims] == [200, 200]
    assert len({claim.json()["job"]["id"] for claim in claims}) == 2


async def test_a_result_of_an_equal_computer_is_not_that_of_the_agent(client, told):
    agent = (await enroll(client, "one", "a")).json()
    await client.post(f"{API}/jobs", json={"project": "demo", "commit": told(1, "a")["commit"], "suite": "quick"})
    claim = (await client.post(f"{API}/agents/{agent['agent_id']}/claim", json={})).json()
    place = f"{API}/jobs/{claim['job']['id']}/attempts/1/report"
    lease = {"Pullback-Lease": claim["lease_token"]}
    refused = await client.post(place, json=told(1, "b"), headers=lease)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["path"] == "$.machine.host"
    assert (await client.post(place, json=told(1, "a"), headers=lease)).status_code == 201


@pytest.fixture
async def shared(guarded, admin, make_token, told):
    """A machine that two projects use, and a token that is limited to each."""
    tokens = {}
    for project in ("mine", "yours"):
        await admin.post(f"{API}/projects", json={"name": project})
        tokens[project] = await make_token("upload", "agent", "read", project=project)
        answer = await guarded.post(f"{API}/reports", json=told(1, None, project=project), headers=tokens[project])
        assert answer.status_code == 201, answer.text
    return tokens


async def facts_of(admin):
    return [
        (each["name"], each["host"], each["facts"]) for each in (await admin.get(f"{API}/machines")).json()["items"]
    ]


async def test_a_limited_token_neither_renames_nor_describes_what_others_use(guarded, admin, shared, told):
    before = await facts_of(admin)
    news = told(2, "drawn", name="hijacked", project="mine", cpu="slow")
    assert (await guarded.post(f"{API}/reports", json=news, headers=shared["mine"])).status_code == 201
    machine = {"fingerprint": "class", "name": "hijacked", "host": "drawn", "facts": {"cpu": "slow"}}
    answer = await guarded.post(
        f"{API}/agents/enroll", json={"name": "mine", "machine": machine}, headers=shared["mine"]
    )
    assert answer.status_code == 201, answer.text
    trust = await guarded.patch(f"{API}/machines/1", json={"accepts": "untrusted"}, headers=shared["mine"])
    assert trust.status_code == 403
    assert await facts_of(admin) == before
    assert (await admin.get(f"{API}/machines/1/changes")).json()["items"] == []
    # Who sees all projects says it for all of them.
    assert (await admin.post(f"{API}/reports", json=told(2, "drawn", name="desk", project="yours"))).status_code == 201
    assert await facts_of(admin) == [("desk", "drawn", {"cpu": "fast"})]


async def test_a_limited_token_describes_a_machine_of_its_own(guarded, admin, shared, told):
    for commit, name in ((1, "mine alone"), (2, "renamed")):
        report = told(commit, "elsewhere", name=name, project="mine")
        report["machine"]["fingerprint"] = "another class"
        assert (await guarded.post(f"{API}/reports", json=report, headers=shared["mine"])).status_code == 201
    assert (await facts_of(admin))[1] == ("renamed", "elsewhere", {"cpu": "fast"})


async def test_a_limited_token_takes_no_agent_of_others(guarded, admin, shared):
    own = (await enroll(guarded, "own", None, headers=shared["mine"])).json()
    agent = (await enroll(admin, "common", None)).json()
    for name in ("common", "other"):  # nor a place beside it
        refused = await enroll(guarded, name, None, headers=shared["mine"])
        assert refused.status_code == 403
        assert "This machine has agents of other projects" in refused.json()["detail"]
    claim = f"{API}/agents/{agent['agent_id']}/claim"
    silenced = await guarded.post(claim, json={"refuses": "I was told so"}, headers=shared["mine"])
    assert silenced.status_code == 404
    seen = (await admin.get(f"{API}/agents")).json()["items"]
    assert [(each["name"], each["refuses"]) for each in seen] == [("own", None), ("common", None)]
    assert (await enroll(guarded, "own", None, headers=shared["mine"])).json()["agent_id"] == own["agent_id"]
    claimed = await guarded.post(f"{API}/agents/{own['agent_id']}/claim", json={}, headers=shared["mine"])
    assert claimed.status_code == 204
    assert (
        await guarded.post(f"{API}/agents/{own['agent_id']}/claim", json={}, headers=shared["yours"])
    ).status_code == 404
