"""The anchor of a project: the newest commit is compared with it once a week, so that slow drift is found."""

import pytest
from sqlalchemy import text
from tests.service.jobs.conftest import Lease, enroll  # noqa: F401 - a fixture

from pullback_service.incidents.anchor_comparisons import anchored_projects, compare_with_anchor

pytestmark = pytest.mark.anyio

API = "/api/v1"
RULES = f"{API}/rules?project=demo"
KINDS = ["run", "compare"]
ANCHOR, NEWEST = 1, 6


@pytest.fixture
async def agent(history, enroll, reports):  # noqa: F811
    """An agent that measured the newest of six commits of the trunk."""
    agent = await enroll("box")
    commits = [history.commit(number)["commit"] for number in range(NEWEST, 0, -1)]
    told = [{name: each[name] for name in ("sha", "parents", "authored_at")} for each in commits]
    await history.client.post(f"{API}/commits", json={"project": "demo", "branch": "main", "commits": told})
    job = {"project": "demo", "commit": {"sha": reports.sha(NEWEST)}, "suite": "standard", "timeout_s": 60}
    await history.client.post(f"{API}/jobs", json=job)
    first = await (await agent.take(kinds=KINDS)).report(history.commit(NEWEST))
    assert first.status_code == 201, first.text
    return agent


@pytest.fixture
def anchored(history, reports):
    """Say that the first commit is the anchor."""

    async def say(**changes):
        return await history.client.put(RULES, json={"anchor": "v1.0", "anchor_sha": reports.sha(ANCHOR), **changes})

    return say


async def queued(database):
    """The jobs that the chore queues now."""
    async with database.writing.begin() as session:
        return [
            job for project in await anchored_projects(session) for job in await compare_with_anchor(session, project)
        ]


async def a_week_later(database):
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE job SET created_at = created_at - interval '8 days'"))


async def answer(history, agent, reports, log_ratio, outcome, *, number=NEWEST, dense=None):
    """Do the job that compares a commit with the anchor: of one workload, or of another one too."""
    claimed = (await agent.claim(kinds=KINDS)).json()
    job = claimed["job"]
    assert (job["reference"]["sha"], job["commit"]["sha"]) == (reports.sha(ANCHOR), reports.sha(number))
    document = history.paired(history.commit(number), log_ratio, outcome, reference=reports.sha(ANCHOR))
    if dense is not None:
        document = history.paired(document, *dense, reference=reports.sha(ANCHOR), workload="dense")
    response = await Lease(history.client, claimed, agent.machine).report(document)
    assert response.status_code == 201, response.text
    await history.look()


async def test_the_newest_commit_is_compared_with_the_anchor_once_a_week(history, agent, anchored, database, reports):
    assert await queued(database) == []
    assert (await anchored()).status_code == 200
    assert len(await queued(database)) == 1
    assert await queued(database) == []  # it waits
    (job,) = (await history.client.get(f"{API}/jobs", params={"origin": "anchor"})).json()["items"]
    assert (job["kind"], job["reference"], job["suite"]) == ("compare", reports.sha(ANCHOR), "standard")
    await answer(history, agent, reports, 0.0, "same")
    assert await history.incidents() == []
    assert await queued(database) == []  # the week is not over
    await a_week_later(database)
    assert await queued(database) == []  # nothing newer was measured
    await history.upload(history.commit(7) | {"machine": agent.machine})
    assert len(await queued(database)) == 1


async def test_what_drifted_is_one_incident_that_is_told_once_and_ends(history, agent, anchored, database, reports):
    await anchored()
    await queued(database)
    await answer(history, agent, reports, 0.08, "slower")
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert (only["kind"], only["state"]) == ("worse", "confirming")
    assert await history.told() == []
    await answer(history, agent, reports, 0.08, "slower")
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert (only["kind"], only["state"]) == ("worse", "confirmed")
    assert only["sentence"].startswith(
        "`fused` of `lstm` takes 8.3 % more time (7.3 to 9.4, 20 groups) than at the anchor 0000000"
    )
    whole = (await history.client.get(only["url"])).json()
    assert [each["evidence"] for each in whole["evidence"]] == ["anchor"]
    assert whole["bisection"] is None
    for number, ratio, outcome in ((7, 0.09, "slower"), (8, 0.0, "same")):
        await history.upload(history.commit(number) | {"machine": agent.machine})
        await a_week_later(database)
        await queued(database)
        await answer(history, agent, reports, ratio, outcome, number=number)
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert (only["state"], only["ended"]["sha"]) == ("resolved", reports.sha(8))
    assert [event for _, event in await history.told()] == ["confirmed", "resolved"]


@pytest.mark.long
async def test_what_only_one_comparison_with_the_anchor_shows_is_refuted_by_the_next_and_told_to_nobody(
    history, agent, anchored, database, reports
):
    """Of so many series that are compared at once some are slower by chance."""
    await anchored()
    await queued(database)
    await answer(history, agent, reports, 0.05, "slower")
    await answer(history, agent, reports, 0.0, "same")
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert only["state"] == "refuted"
    assert await history.told() == []


@pytest.mark.long
async def test_an_unaffected_case_tells_the_machine_from_what_drifted(history, agent, anchored, database, reports):
    await history.upload(history.commit(ANCHOR) | {"machine": agent.machine})
    await anchored()
    await queued(database)
    await answer(history, agent, reports, 0.08, "slower", dense=(0.005, "ambiguous"))
    (job,) = (await history.client.get(f"{API}/jobs", params={"origin": "confirm"})).json()["items"]
    assert [label.partition("[")[0] for label in job["cases"]] == ["lstm", "dense"]
    await answer(history, agent, reports, 0.08, "slower", dense=(0.08, "slower"))
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert only["state"] == "refuted"
    assert await history.told() == []


async def test_an_anchor_that_is_no_known_commit_of_the_trunk_is_refused_and_the_rules_go_on(
    history, agent, anchored, database, reports
):
    assert (await anchored()).json()["anchor_sha"] == reports.sha(ANCHOR)
    refused = await anchored(anchor_sha="f" * 40)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["path"] == "$.anchor"
    assert "is not a known commit of main" in refused.json()["detail"]
    held = (await history.client.get(RULES)).json()
    assert (held["anchor"], held["anchor_sha"]) == ("v1.0", reports.sha(ANCHOR))
    without_tags = (await history.client.put(RULES, json={"anchor": "v1.0"})).json()
    assert (without_tags["anchor_sha"], without_tags["changed"]) == (reports.sha(ANCHOR), False)
    other = (await history.client.put(RULES, json={"anchor": "v2.0"})).json()
    assert (other["anchor"], other["anchor_sha"]) == ("v2.0", None)
    assert await queued(database) == []
    gone = (await history.client.put(RULES, json={})).json()
    assert (gone["anchor"], gone["changed"]) == (None, True)


async def a_week_of(history, agent, anchored, database, reports, number, ratio, outcome="slower"):
    """A new commit, measured alone, and the comparison with the anchor that follows."""
    await history.upload(history.commit(number) | {"machine": agent.machine})
    await a_week_later(database)
    await queued(database)
    await answer(history, agent, reports, ratio, outcome, number=number)


async def slower_at(history, agent, number, ratio):
    """An upload that measured a commit against its parent, in turns."""
    await history.upload(history.paired(history.commit(number, seed=2), ratio, "slower") | {"machine": agent.machine})


async def messages(history, database):
    """The event, title and thread of all messages, oldest first."""
    async with database.reading() as session:
        rows = await session.execute(
            text("SELECT event, facts ->> 'title', facts ->> 'thread' FROM notification ORDER BY id")
        )
        return [tuple(row) for row in rows]


@pytest.mark.long
async def test_a_drift_of_which_a_commit_was_announced_is_a_reply_once_it_is_twice_as_large(
    history, agent, anchored, database, reports
):
    await slower_at(history, agent, 4, 0.05)
    await anchored()
    await queued(database)
    await answer(history, agent, reports, 0.08, "slower")
    await answer(history, agent, reports, 0.08, "slower")
    step, drift = await history.incidents()
    assert (step.incident.state, drift.incident.state) == ("confirmed", "confirmed")
    assert [each.change.evidence for each in drift.changes] == ["anchor"]
    assert await history.told() == [(step.incident.id, "confirmed")]
    await a_week_of(history, agent, anchored, database, reports, 7, 0.17)
    assert len(await history.told()) == 1
    await a_week_of(history, agent, anchored, database, reports, 8, 0.18)
    assert await history.told() == [(step.incident.id, "confirmed"), (drift.incident.id, "grown")]
    (_, _, thread), (event, title, also) = await messages(history, database)
    assert (event, thread) == ("grown", also)
    assert title == "Grown: `fused` of `lstm` takes 19 % more time (17 to 20, 20 groups)"


@pytest.mark.long
async def test_a_commit_that_did_a_part_of_an_announced_drift_is_announced_with_it(
    history, agent, anchored, database, reports
):
    await anchored()
    await queued(database)
    await answer(history, agent, reports, 0.08, "slower")
    await answer(history, agent, reports, 0.08, "slower")
    await slower_at(history, agent, 4, 0.05)
    drift, step = await history.incidents()
    assert (drift.incident.state, step.incident.state) == ("confirmed", "confirmed")
    assert await history.told() == [(drift.incident.id, "confirmed")]
    shown = (await history.client.get(f"{API}/incidents/{step.incident.id}")).json()["events"][-1]["details"]
    assert shown["because"] == f"Announced with incident {drift.incident.id}, which is about the same change."


@pytest.mark.long
async def test_a_commit_that_explains_an_announced_drift_takes_its_place_and_nothing_is_announced_again(
    history, agent, anchored, database, reports
):
    await anchored()
    await queued(database)
    await answer(history, agent, reports, 0.08, "slower")
    await answer(history, agent, reports, 0.08, "slower")
    (drift,) = await history.incidents()
    await slower_at(history, agent, 4, 0.078)
    (only,) = await history.incidents()
    assert (only.incident.id, only.incident.state) == (drift.incident.id, "confirmed")
    assert [(each.change.evidence, each.commit.sha) for each in only.changes] == [("paired", reports.sha(4))]
    assert [event for _, event in await history.told()] == ["confirmed"]


@pytest.mark.long
async def test_what_was_announced_with_an_incident_alone_is_announced_when_that_one_is_over(
    history, agent, anchored, database, reports
):
    await slower_at(history, agent, 4, 0.05)
    await anchored()
    await queued(database)
    await answer(history, agent, reports, 0.08, "slower")
    await answer(history, agent, reports, 0.08, "slower")
    step, drift = await history.incidents()
    assert await history.told() == [(step.incident.id, "confirmed")]
    await history.client.post(f"{API}/incidents/{step.incident.id}/verdict", json={"verdict": "expected"})
    assert await history.told() == [
        (step.incident.id, "confirmed"),
        (step.incident.id, "resolved"),
        (drift.incident.id, "confirmed"),
    ]
