"""Machines that have nothing to do compare a commit with itself, and what they find is their noise."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import func, select, text

from pullback_service import worker
from pullback_service.ids import MachineId
from pullback_service.incidents.detection_inputs import _floors
from pullback_service.jobs.idle_machines import occupy_idle_machines
from pullback_service.machines.noise_cache import NoiseMemory
from pullback_service.models import Job, Point

pytestmark = pytest.mark.anyio

KINDS = ["run", "compare"]


def noise_report(reports, number, workload, *, log_ratio=0.001, groups=(0.004, -0.002, 0.001), machine="box"):
    """What an agent sends of an A/A job: comparisons, and no points of the commit."""
    row = {
        "case": reports.case(workload)["case"],
        "variant": "unfused",
        "metric": "time",
        "reference": reports.sha(number),
        "candidate": reports.sha(number),
        "log_ratio": log_ratio,
        "low": log_ratio - 0.003,
        "high": log_ratio + 0.003,
        "n": len(groups),
        "outcome": "ambiguous",
        "log_ratios": list(groups),
    }
    known = {"fingerprint": machine, "name": machine}  # as it enrolled
    return {**reports.report(number, cases=[], comparisons=[row]), "machine": known}


@pytest.fixture
def occupy(database):
    async def occupy(every_hours=12, idle_after_s=0):
        async with database.writing.begin() as session:
            return await occupy_idle_machines(session, every_hours=every_hours, idle_after_s=idle_after_s)

    return occupy


@pytest.fixture
def age(database):
    """Let jobs and attempts be older than they are."""

    async def age(hours):
        async with database.writing.begin() as session:
            for statement in (
                "UPDATE job SET created_at = created_at - :age",
                "UPDATE attempt SET ended_at = ended_at - :age",
            ):
                await session.execute(text(statement), {"age": timedelta(hours=hours)})

    return age


@pytest.fixture
def measured(enroll, queue, reports):
    """An agent that has measured a commit: two workloads."""

    async def measured(number=1, machine=None, suite="quick"):
        await queue(number, suite=suite)
        agent = await enroll(machine=machine)
        lease = await agent.take()
        response = await lease.report(
            reports.report(number, cases=[reports.case("lstm"), reports.case("poly9")], machine=machine or "box")
        )
        assert response.status_code == 201, response.text
        return agent

    return measured


async def test_an_idle_machine_repeats_a_part_of_what_it_measured_last(client, measured, occupy, reports):
    agent = await measured()
    (job_id,) = await occupy()
    job = (await client.get(f"/api/v1/jobs/{job_id}")).json()
    assert (job["kind"], job["origin"], job["machine_id"]) == ("compare", "idle", agent.machine_id)
    assert (job["suite"], job["priority"], job["trust"]) == ("quick:lstm", -1000, "trusted")
    assert job["commit"]["sha"] == job["reference"] == reports.sha(1)
    lease = await agent.take(kinds=KINDS)
    assert lease.claim["job"]["id"] == job_id


async def test_one_at_a_time_and_not_more_often_than_wanted(measured, occupy, age, client):
    await measured()
    (first,) = await occupy()
    assert await occupy() == []
    await client.post(f"/api/v1/jobs/{first}/cancel")
    assert await occupy() == []
    await age(11)
    assert await occupy() == []
    await age(2)
    assert len(await occupy()) == 1


async def test_several_workers_at_once_make_one_job(measured, occupy, session):
    await measured()
    made = await asyncio.gather(*(occupy() for _ in range(5)))
    assert sum(map(len, made)) == 1
    assert await session.scalar(select(func.count()).where(Job.origin == "idle")) == 1


async def test_a_machine_that_works_or_just_worked_or_has_gone_is_left_alone(measured, occupy, queue, database):
    agent = await measured()
    assert await occupy(idle_after_s=600) == []
    await queue(2)
    lease = await agent.take()
    assert await occupy() == []
    await lease.fail("build")
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = last_seen_at - interval '10 minutes'"))
    assert await occupy() == []


async def test_a_machine_that_never_measured_anything_is_left_alone(enroll, queue, occupy):
    agent = await enroll()
    await queue()
    await (await agent.take()).fail("build")
    assert await occupy() == []


async def test_real_work_goes_first(measured, occupy, queue):
    agent = await measured()
    await occupy()
    real = await queue(2, priority=-999)
    assert (await agent.take(kinds=KINDS)).claim["job"]["id"] == real["id"]


async def test_what_a_machine_found_no_time_for_is_given_up(client, measured, occupy, age):
    await measured()
    (old,) = await occupy()
    await age(13)
    (new,) = await occupy()
    assert new != old
    given_up = (await client.get(f"/api/v1/jobs/{old}")).json()
    assert (given_up["state"], given_up["failure_message"]) == ("cancelled", "The machine was not idle in time.")


async def test_workloads_take_turns_and_their_noise_is_kept_by_machine(client, measured, occupy, age, reports, session):
    agent = await measured(machine="box")
    before = await session.scalar(select(func.count()).select_from(Point))
    for workload in ("lstm", "poly9", "lstm"):
        (job_id,) = await occupy()
        lease = await agent.take(kinds=KINDS)
        assert (lease.claim["job"]["id"], lease.claim["job"]["suite"]) == (job_id, f"quick:{workload}")
        answer = await lease.report(noise_report(reports, 1, workload))
        assert (answer.status_code, answer.json()["points"]) == (201, 0)
        await age(13)
    assert await session.scalar(select(func.count()).select_from(Point)) == before
    noise = (await client.get(f"/api/v1/machines/{agent.machine_id}/noise")).json()
    assert (noise["machine"], noise["comparisons"], noise["groups"], noise["provisional"]) == ("box", 3, 9, True)
    assert [(each["workload"], each["groups"]) for each in noise["workloads"]] == [("lstm", 6), ("poly9", 3)]
    assert [day["groups"] for day in noise["history"]] == [9]
    assert (noise["false_alarms"], noise["truncated"]) == (0, False)
    assert (await client.get("/api/v1/machines/999/noise")).status_code == 404
    assert (await client.get(f"/api/v1/machines/{agent.machine_id}/noise", params={"days": 0})).status_code == 422


async def test_what_was_measured_on_a_device_is_repeated_there(client, enroll, queue, occupy, age, reports):
    def lstm(device):
        found = reports.case("lstm")
        return {**found, "case": {**found["case"], "device": device}}

    on_cpu, on_gpu = await enroll(machine="box"), await enroll(machine="box", labels={"device": "cuda"})
    for number, agent, device in ((1, on_cpu, "cpu"), (2, on_gpu, "cuda")):
        await queue(number, requires={"device": device})
        lease = await agent.take()
        assert (await lease.report(reports.report(number, cases=[lstm(device)]))).status_code == 201
        (job_id,) = await occupy()
        job = (await client.get(f"/api/v1/jobs/{job_id}")).json()
        assert job["requires"] == ({} if device == "cpu" else {"device": "cuda"})
        lease = await agent.take(kinds=KINDS)
        assert lease.claim["job"]["id"] == job_id
        noise = noise_report(reports, number, "lstm", groups=[0.001 if device == "cpu" else 0.1] * 20)
        noise["comparisons"][0]["case"] = lstm(device)["case"]
        assert (await lease.report(noise)).status_code == 201
        await age(13)


async def test_devices_of_a_machine_take_turns_whichever_measured_last(client, enroll, queue, occupy, age, reports):
    on_gpu, on_cpu = await enroll(machine="box", labels={"device": "cuda"}), await enroll(machine="box")
    case = reports.case("lstm")
    for number, agent, device in ((1, on_gpu, "cuda"), (2, on_cpu, "cpu")):
        await queue(number, requires={"device": device})
        document = reports.report(number, cases=[{**case, "case": {**case["case"], "device": device}}])
        assert (await (await agent.take()).report(document)).status_code == 201
    asked = []
    for _ in range(3):
        while made := await occupy():
            (job_id,) = made
            asked.append((await client.get(f"/api/v1/jobs/{job_id}")).json()["requires"].get("device", "cpu"))
            lease = await (on_gpu if asked[-1] == "cuda" else on_cpu).take(kinds=KINDS)
            await lease.fail("build")
        await age(13)
    assert asked == ["cpu", "cuda"] * 3


@pytest.mark.long
async def test_devices_of_a_machine_have_noise_of_their_own(client, enroll, queue, occupy, age, reports, session):
    await test_what_was_measured_on_a_device_is_repeated_there(client, enroll, queue, occupy, age, reports)
    floors = {}
    for device in ("cpu", "cuda", None):
        (heard,) = (await NoiseMemory().of(session, [MachineId(1)], days=90, device=device)).values()
        floors[device] = (heard.noise.all.floor, heard.noise.all.groups)
    assert (floors["cpu"], floors["cuda"], floors[None][1]) == ((0.001, 20), (0.1, 20), 40)
    known = await _floors(session, {(1, "cpu"), (1, "cuda"), (1, "tpu")})
    assert set(known) == {(1, "cpu"), (1, "cuda")}
    assert known[1, "cuda"] > 32 * known[1, "cpu"]


async def test_the_chore_does_it_when_it_is_wanted(measured, database_url, session, age):
    await measured()
    await age(1)
    for hours, jobs in ((0, 0), (12, 1)):
        app = worker.build_app(database_url)
        async with app.open_async():
            await app.tasks["pullback:occupy_idle_machines"].defer_async(timestamp=0)
        await worker.run_once(database_url, idle_noise_hours=hours)
        assert await session.scalar(select(func.count()).where(Job.origin == "idle")) == jobs


async def test_an_idle_job_that_somebody_retries_is_wanted(client, measured, occupy, age):
    await measured()
    (job_id,) = await occupy()
    await client.post(f"/api/v1/jobs/{job_id}/cancel")
    await age(13)
    await occupy()
    again = await client.post(f"/api/v1/jobs/{job_id}/retry")
    assert (again.status_code, again.json()["origin"]) == (200, "asked")


@pytest.mark.long
async def test_every_metric_compared_with_itself_is_counted_and_news_is_heard(client, measured, occupy, age, reports):
    agent = await measured(machine="box")
    url = f"/api/v1/machines/{agent.machine_id}/noise"
    assert (await client.get(url)).json()["metrics"] == []
    for number, outcome in ((1, "equal"), (2, "more")):
        await age(13)
        await occupy()
        lease = await agent.take(kinds=KINDS)
        report = noise_report(reports, 1, "poly9")
        count = {**report["comparisons"][0], "metric": "array_bytes", "outcome": outcome, "log_ratios": None}
        report["comparisons"].append(count)
        answer = await lease.report(report)
        assert answer.status_code == 201, answer.text
        noise = (await client.get(url)).json()
        assert (noise["metric"], noise["comparisons"]) == ("time", number)
    assert [(each["metric"], each["comparisons"], each["differing"]) for each in noise["metrics"]] == [
        ("array_bytes", 2, 1),
        ("time", 2, 0),
    ]
    assert (await client.get(url, params={"metric": "array_bytes"})).json()["comparisons"] == 2
