"""Series of a GPU are watched, measured again and bisected on a GPU, apart from those that the same machine measures on its CPU."""

import copy

import pytest
from sqlalchemy import text
from tests.service.incidents.test_bisection_jobs import GOOD, Bench, incident, slower
from tests.service.jobs.conftest import Lease, enroll  # noqa: F401 - a fixture

from pullback_service.incidents.anchor_comparisons import compare_with_anchor

pytestmark = pytest.mark.anyio

API = "/api/v1"
KINDS = ["run", "compare"]
ENVIRONMENT = "driver 570.86, cuda 12.8, torch 2.11.0"


def on_gpu(document, *, environment=ENVIRONMENT, machine=None):
    """The same report of a GPU, whose methods name the environment as `pullback run --device cuda` writes them."""
    document = copy.deepcopy(document)
    for case in document["cases"]:
        case["case"]["device"] = "cuda"
        for variant in case["variants"]:
            variant["metrics"]["time"] |= {"clock": "wall", "method": f"wall, {environment}"}
    for row in document["comparisons"]:
        row["case"]["device"] = "cuda"
    return document if machine is None else document | {"machine": machine}


async def agents_of(history, enroll, reports, number=1):  # noqa: F811
    """Two agents of one machine, the second of which measures on its GPU; both measured a commit."""
    agents = await enroll("box"), await enroll("box", labels={"device": "cuda"})
    for agent, device in zip(agents, ("cpu", "cuda"), strict=True):
        job = {"project": "demo", "commit": {"sha": reports.sha(number)}, "suite": "standard", "timeout_s": 60}
        await history.client.post(f"{API}/jobs", json=job | {"requires": {"device": device}})
        document = history.commit(number)
        answer = await (await agent.take(kinds=KINDS)).report(document if device == "cpu" else on_gpu(document))
        assert answer.status_code == 201, answer.text
    await history.look()
    return agents


@pytest.fixture
async def agents(history, enroll, reports):  # noqa: F811
    return await agents_of(history, enroll, reports)


async def measure(history, agents, numbers, *, ratio=-0.5, environment=ENVIRONMENT, quality="clean"):
    """Upload what the machine measured at some commits on both devices: only the GPU's ratio is another one."""
    machine = agents[1].machine
    for number in numbers:
        gpu = on_gpu(history.commit(number, ratio=ratio, quality=quality), environment=environment, machine=machine)
        await history.upload(history.commit(number) | {"machine": machine}, gpu)


async def jobs(history, origin):
    return (await history.client.get(f"{API}/jobs", params={"origin": origin})).json()["items"]


async def test_a_suspicion_is_measured_again_on_its_device_and_told_with_it(history, agents, reports):
    await measure(history, agents, range(2, 11))
    await measure(history, agents, range(11, 14), ratio=-0.4)
    assert [detail.incident.state for detail in await history.incidents()] == ["confirming"]
    assert (await agents[0].claim(kinds=KINDS)).status_code == 204
    lease = await agents[1].take(kinds=KINDS)
    job = lease.claim["job"]
    assert (job["kind"], job["requires"]["device"]) == ("compare", "cuda")
    assert job["cases"] == ["lstm[n=100,act=tanh,f4,cuda]", "dense[n=100,act=tanh,f4,cuda]"]
    document = history.paired(history.commit(11), 0.1, "slower", reference=reports.sha(10)) | {"cases": []}
    assert (await lease.report(on_gpu(document))).status_code == 201
    await history.look()
    assert [event for _, event in await history.told()] == ["confirmed"]
    (only,) = await history.incidents()
    assert {each.case for each in only.changes} == {"lstm[n=100,act=tanh,f4,cuda]"}
    (listed,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert listed["sentence"].startswith("`fused` of `lstm` on `cuda` takes 11 % more time")
    shown = (await history.client.get(listed["url"])).json()
    assert {each["device"] for each in shown["evidence"]} == {"cuda"}
    told = next(event["details"] for event in shown["events"] if event["told"])
    assert (told["devices"], list(told["sizes"])) == (["cuda"], ["cuda of box"])
    assert told["title"].startswith("`fused` of `lstm` on `cuda` takes")


async def test_a_change_on_both_devices_is_one_incident_that_names_them_and_grew_with_the_second(
    history, agents, reports
):
    """It is measured on one device after the other, as on one machine after the other."""
    document = history.paired(history.commit(2), 0.1, "slower") | {"machine": agents[0].machine}
    await history.upload(document)
    await history.upload(on_gpu(document | {"id": reports.report()["id"]}))
    (listed,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert listed["sentence"].startswith("`fused` of `lstm` on `cpu` and `cuda` takes 11 % more time")
    assert [event for _, event in await history.told()] == ["confirmed", "grown"]


@pytest.mark.long
async def test_without_an_agent_of_the_device_nothing_is_queued(history, agents, database):
    async with database.writing.begin() as session:
        await session.execute(
            text("UPDATE agent SET last_seen_at = now() - interval '2 days' WHERE labels ->> 'device' = 'cuda'")
        )
    await measure(history, agents, range(2, 11))
    await measure(history, agents, range(11, 14), ratio=-0.4)
    assert await jobs(history, "confirm") == []
    assert [detail.incident.state for detail in await history.incidents()] == ["suspected"]


@pytest.mark.long
async def test_another_driver_is_another_level_that_is_compared_in_turns_and_accuses_no_commit(
    history, agents, database, reports
):
    """A driver that makes everything 30 % slower came with the eleventh commit."""
    await measure(history, agents, range(2, 11))
    await measure(history, agents, range(11, 20), ratio=-0.2, environment="driver 999.1, cuda 12.8, torch 2.11.0")
    assert await history.incidents() == []
    (job,) = await jobs(history, "confirm")
    assert (job["reference"], job["commit"]["sha"]) == (reports.sha(10), reports.sha(11))
    assert job["requires"] == {"device": "cuda"}
    assert (await agents[0].claim(kinds=KINDS)).status_code == 204
    lease = await agents[1].take(kinds=KINDS)
    document = history.paired(history.commit(11), 0.0, "same", reference=reports.sha(10)) | {"cases": []}
    assert (await lease.report(on_gpu(document))).status_code == 201
    await history.look()
    assert await history.incidents() == []
    async with database.reading() as session:
        assert await session.scalar(text("SELECT count(*) FROM change")) == 0


@pytest.mark.long
async def test_a_throttled_gpu_accuses_nobody(history, agents):
    """Times that were taken while the device was slowed down, without a baseline in the same groups."""
    machine = agents[1].machine
    for number in range(2, 20):
        throttled = number > 10
        document = history.commit(number, ratio=0.3 if throttled else -0.5, quality="busy" if throttled else "clean")
        for case in document["cases"]:
            case["paired"] = []
        await history.upload(on_gpu(document, machine=machine))
    assert await history.incidents() == []


@pytest.mark.long
async def test_times_beside_the_one_that_decides_are_watched_by_nobody(history, agents):
    machine = agents[1].machine
    for number in range(2, 20):
        document = on_gpu(history.commit(number), machine=machine)
        for case in document["cases"]:
            for variant in case["variants"]:
                for name in ("device_time", "host_time", "time_cold"):
                    seconds = (2.0 if number > 10 else 1.0) * (1 + number % 3 / 100)
                    variant["metrics"][name] = {"unit": "s", "method": "wall", "processes": [seconds] * 3}
        await history.upload(document)
    assert await history.incidents() == []


@pytest.mark.long
async def test_a_range_is_bisected_on_the_device_that_showed_it(history, enroll, reports):  # noqa: F811
    on_cpu, agent = await agents_of(history, enroll, reports, GOOD)
    commits = [history.commit(number)["commit"] for number in range(17, 0, -1)]
    told = [{name: each[name] for name in ("sha", "parents", "authored_at")} for each in commits]
    await history.client.post(f"{API}/commits", json={"project": "demo", "branch": "main", "commits": told})
    bench = Bench(GpuHistory(history), reports, agent)
    await slower(bench)
    assert {job["requires"]["device"] for job in await jobs(history, "bisect")} == {"cuda"}
    assert (await on_cpu.claim(kinds=KINDS)).status_code == 204
    await bench.answer()
    found = await incident(history)
    assert (found["bisection"]["state"], found["bisection"]["culprit"]) == ("found", reports.sha(6))


class GpuHistory:
    """The same history, measured on a GPU."""

    def __init__(self, history):
        self.history, self.client = history, history.client

    def commit(self, *told, **parts):
        return on_gpu(self.history.commit(*told, **parts))

    def __getattr__(self, name):
        return getattr(self.history, name)


@pytest.mark.long
async def test_what_the_other_device_did_not_measure_is_not_missing(history, agents, reports):
    """A machine measures the CPU at each commit and the GPU at some: reports of one suite, but of two devices."""
    await measure(history, agents, range(2, 5))
    await history.upload(*(history.commit(number) | {"machine": agents[0].machine} for number in range(5, 10)))
    assert await history.incidents() == []
    for number in range(10, 13):
        document = on_gpu(history.commit(number), machine=agents[0].machine)
        document["cases"] = [case for case in document["cases"] if case["case"]["workload"] != "lstm"]
        await history.upload(document)
    (only,) = await history.incidents()
    assert (only.incident.kind, only.commit.sha) == ("missing", reports.sha(10))
    assert {each.case for each in only.changes} == {"lstm[n=100,act=tanh,f4,cuda]"}


async def test_each_device_is_compared_with_the_anchor(history, agents, database, reports):
    rules = {"anchor": "v1.0", "anchor_sha": reports.sha(1)}
    await history.client.put(f"{API}/rules", params={"project": "demo"}, json=rules)
    await measure(history, agents, [2])
    await history.upload(history.commit(3) | {"machine": agents[0].machine})
    async with database.writing.begin() as session:
        assert len(await compare_with_anchor(session, 1)) == 2
        assert await compare_with_anchor(session, 1) == []
    queued = {job["requires"]["device"]: job["commit"]["sha"] for job in await jobs(history, "anchor")}
    assert queued == {"cpu": reports.sha(3), "cuda": reports.sha(2)}
    for agent, device in zip(agents, ("cpu", "cuda"), strict=True):
        claimed = (await agent.claim(kinds=KINDS)).json()
        assert claimed["job"]["requires"]["device"] == device
        await Lease(history.client, claimed, agent.machine).fail("build", message="does not build")
