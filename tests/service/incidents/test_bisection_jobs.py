"""A confirmed incident with several commits in its range is bisected by agents, and its commit is told once."""

import pytest
from sqlalchemy import text
from tests.service.jobs.conftest import Lease, enroll  # noqa: F401 - a fixture

from pullback_service.incidents.detection import detect, sweep

pytestmark = pytest.mark.anyio

API = "/api/v1"
KINDS = ["run", "compare"]
GOOD, BAD = 1, 17
CULPRIT = 6


class Bench:
    """An agent that answers jobs by the known truth: `lstm` takes 10 % more time, or `memory` more, from a commit on."""

    def __init__(self, history, reports, agent):
        self.history, self.reports, self.agent = history, reports, agent
        self.numbers = {reports.sha(number): number for number in range(1, 40)}
        self.asked = []

    async def answer(self, *, culprit=CULPRIT, broken=(), size=0.1, memory=1024.0, shares=None, is_wrong=False):
        """Do all jobs of bisections that wait; each commit in `shares` has a part in the change, or makes the gradient wrong."""
        steps = {culprit: 1.0} if shares is None else shares
        while (claimed := await self.agent.claim(kinds=KINDS)).status_code == 200:
            job = claimed.json()["job"]
            lease = self.lease(claimed.json())
            reference, commit = (self.numbers[job[end]["sha"]] for end in ("reference", "commit"))
            self.asked.append((reference, commit, job["effort"]))
            if commit in broken:
                await lease.fail("build", message="does not build")
            elif is_wrong:
                document = self.history.commit(commit, wrong=("lstm",) if commit >= culprit else ())
                assert (await lease.report(document)).status_code == 201
            else:
                moved = size * sum(share for at, share in steps.items() if reference < at <= commit)
                outcome = "slower" if moved > 0.01 else "same"
                bytes_ = memory if commit >= culprit else 1024.0
                document = self.history.commit(commit, ratio=-0.5 + moved, array_bytes=bytes_)
                document = self.history.paired(document, moved, outcome, reference=self.reports.sha(reference))
                answer = await lease.report(document | {"cases": document["cases"] if memory != 1024.0 else []})
                assert answer.status_code == 201, answer.text
            await self.history.look()

    def lease(self, claim):
        return Lease(self.history.client, claim, self.agent.machine)


@pytest.fixture
async def bench(history, enroll, reports):  # noqa: F811
    """An agent whose machine measured the good end; the log of seventeen commits is known."""
    agent = await enroll("box")
    job = {"project": "demo", "commit": {"sha": reports.sha(GOOD)}, "suite": "standard", "timeout_s": 60}
    await history.client.post(f"{API}/jobs", json=job)
    first = await (await agent.take(kinds=KINDS)).report(history.commit(GOOD))
    assert first.status_code == 201, first.text
    commits = [history.commit(number)["commit"] for number in range(BAD, 0, -1)]
    told = [{name: each[name] for name in ("sha", "parents", "authored_at")} for each in commits]
    log = await history.client.post(f"{API}/commits", json={"project": "demo", "branch": "main", "commits": told})
    assert log.status_code in {200, 201}, log.text
    return Bench(history, reports, agent)


async def slower(bench, **parts):
    """The bad end is measured in turns with the good one: 10 % slower, for sixteen commits."""
    document = bench.history.paired(
        bench.history.commit(BAD, ratio=-0.4, **parts), 0.1, "slower", reference=bench.reports.sha(GOOD)
    )
    await bench.history.upload(document | {"machine": bench.agent.machine})


async def incident(history):
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    return (await history.client.get(only["url"])).json()


async def test_the_commit_is_found_by_few_jobs_and_told_once(history, bench, reports):
    await slower(bench)
    before = await incident(history)
    assert (before["state"], before["bisection"]["state"]) == ("confirmed", "running")
    (job,) = (await history.client.get(f"{API}/jobs", params={"origin": "bisect"})).json()["items"]
    assert (job["variants"], job["cases"]) == (["fused"], ["lstm[n=100,act=tanh,f4,cpu]"])
    await bench.answer()
    found = await incident(history)
    assert found["bisection"] | {"started_at": None} == {
        "state": "found",
        "culprit": reports.sha(CULPRIT),
        "share": 1.0,
        "job_id": found["bisection"]["job_id"],
        "jobs": 5,
        "started_at": None,
    }
    assert bench.asked == [(1, 9, 1), (1, 5, 1), (1, 7, 1), (1, 6, 1), (5, 6, 1)]
    assert (found["reference"]["sha"], found["commit"]["sha"]) == (reports.sha(5), reports.sha(6))
    assert [event for _, event in await history.told()] == ["confirmed", "culprit"]
    await history.look()
    assert [event for _, event in await history.told()] == ["confirmed", "culprit"]


@pytest.mark.long
async def test_commits_that_do_not_build_are_passed_over_and_named(history, bench, reports):
    await slower(bench)
    await bench.answer(broken=(5, 9))
    found = await incident(history)
    (event,) = [each for each in found["events"] if each["event"] == "bisected"]
    assert found["bisection"]["state"] == "undecided"
    assert event["details"]["suspects"] == [reports.sha(5), reports.sha(6)]
    assert event["details"]["passed_over"] == [reports.sha(5), reports.sha(9)]
    assert event["details"]["because"] == "It is one of 2 commits, of which the others gave no answer."
    assert [event for _, event in await history.told()] == ["confirmed"]


@pytest.mark.long
async def test_counts_need_the_jobs_of_a_search_and_no_comparison_with_the_parent(history, bench, reports):
    await bench.history.upload(bench.history.commit(BAD, array_bytes=4096.0) | {"machine": bench.agent.machine})
    await bench.answer(culprit=11, size=0.0, memory=4096.0)
    found = await incident(history)
    assert (found["bisection"]["state"], found["bisection"]["culprit"]) == ("found", reports.sha(11))
    assert bench.asked[0] == (GOOD, BAD, 1)  # a second report that counts so
    assert len(bench.asked) == 1 + 4
    assert found["reference"]["sha"] == reports.sha(10)


@pytest.mark.long
async def test_a_wrong_gradient_is_searched_by_what_fails(history, bench, reports):
    await history.upload(history.commit(BAD, wrong=("lstm",)) | {"machine": bench.agent.machine})
    await bench.answer(culprit=8, is_wrong=True)
    found = await incident(history)
    assert (found["kind"], found["bisection"]["culprit"]) == ("wrong_gradient", reports.sha(8))
    assert (found["bisection"]["state"], found["bisection"]["share"], len(bench.asked)) == ("found", 1.0, 4)
    assert [event for _, event in await history.told()] == ["confirmed", "culprit"]


@pytest.mark.long
async def test_of_two_causes_the_larger_is_named_first_and_the_rest_goes_on_as_an_incident_of_its_own(
    history, bench, reports
):
    await slower(bench)
    await bench.answer(shares={4: 0.3, 12: 0.7})
    found = {}
    for each in (await history.client.get(f"{API}/incidents")).json()["items"]:
        whole = (await history.client.get(each["url"])).json()
        found[whole["commit"]["sha"]] = whole
    assert sorted(found) == [reports.sha(4), reports.sha(12)]
    for sha, whole in found.items():
        assert (whole["bisection"]["state"], whole["bisection"]["culprit"]) == ("found", sha)
    (rest,) = [event for event in found[reports.sha(12)]["events"] if event["event"] == "rest"]
    assert rest["details"]["because"] == "That explains 70% of the change: other commits of the range contribute too."
    assert [event for _, event in await history.told()].count("culprit") == 2


@pytest.mark.long
async def test_a_machine_without_time_goes_on_the_next_day(history, bench, database):
    document = history.paired(history.commit(BAD, ratio=-0.4), 0.1, "slower", reference=bench.reports.sha(GOOD))
    document |= {"machine": bench.agent.machine}
    assert (await history.client.post(f"{API}/reports", json=document)).status_code == 201
    async with database.writing.begin() as session:
        (project,) = (await session.execute(text("SELECT id FROM project"))).scalars()
        await detect(session, project, minutes_a_day=0)
        assert await sweep(session) == 0
    assert (await bench.agent.claim(kinds=KINDS)).status_code == 204
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE bisection SET next_at = next_at - interval '1 day'"))
        assert await sweep(session) == 1
        await detect(session, project)
    await bench.answer()
    assert (await incident(history))["bisection"]["state"] == "found"


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("is_queued", [True, False])
async def test_a_search_is_given_up_where_its_machine_does_not_come_back(history, bench, database, is_queued):
    document = history.paired(history.commit(BAD, ratio=-0.4), 0.1, "slower", reference=bench.reports.sha(GOOD))
    document |= {"machine": bench.agent.machine}
    assert (await history.client.post(f"{API}/reports", json=document)).status_code == 201

    async def days_pass(days):
        async with database.writing.begin() as session:
            for change in (
                "UPDATE agent SET last_seen_at = last_seen_at - make_interval(days => :days)",
                "UPDATE job SET created_at = created_at - make_interval(days => :days)",
                "UPDATE job SET finished_at = finished_at - make_interval(days => :days)",
                "UPDATE bisection SET started_at = started_at - make_interval(days => :days)",
                "UPDATE bisection SET next_at = next_at - make_interval(days => :days)",
            ):
                await session.execute(text(change), {"days": days})
        for _ in range(2):
            async with database.writing.begin() as session:
                await sweep(session)
            await history.look()

    if is_queued:
        await history.look()
        await days_pass(8)
    else:  # it was confirmed without time left, and the machine is gone the day after
        async with database.writing.begin() as session:
            (project,) = (await session.execute(text("SELECT id FROM project"))).scalars()
            await detect(session, project, minutes_a_day=0)
        await days_pass(8)
    assert (await incident(history))["bisection"]["state"] == "running"
    await days_pass(7)
    found = await incident(history)
    (event,) = [each for each in found["events"] if each["event"] == "bisected"]
    assert event["details"]["because"].startswith("No agent of its machine could go on for 14 days.")
    assert (found["state"], found["bisection"]["state"]) == ("confirmed", "undecided")
    waiting = (await history.client.get(f"{API}/jobs", params={"state": "queued"})).json()["items"]
    assert waiting == []


@pytest.mark.long
async def test_what_is_older_than_detection_is_bisected_only_if_somebody_asks(history, bench, database):
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE project SET detected_from = now() + interval '1 hour'"))
    await slower(bench)
    seen = await incident(history)
    assert (seen["seen"], seen["bisection"]) == (True, None)
    asked = await history.client.post(f"{seen['url']}/bisect")
    assert asked.status_code == 200, asked.text
    assert asked.json()["bisection"]["state"] == "running"
    again = await history.client.post(f"{seen['url']}/bisect")
    assert again.json()["bisection"]["jobs"] == 1
    await bench.answer()
    assert (await incident(history))["bisection"]["state"] == "found"
    assert await history.told() == []
