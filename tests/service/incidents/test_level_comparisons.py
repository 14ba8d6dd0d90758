"""The first commit of another level is compared with the last before it: of another harness, workload, method or state of the machine."""

import copy

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs
from tests.service.jobs.conftest import Lease, enroll  # noqa: F401 - a fixture

from pullback_service.incidents import level_comparisons

pytestmark = pytest.mark.anyio

KINDS = ["run", "compare"]
CASES = ["dense[n=100,act=tanh,f4,cpu]", "lstm[n=100,act=tanh,f4,cpu]"]
VARIANTS = ["fused", "unfused"]
JOBS = """
SELECT older.sha, newer.sha, job.suite, job.origin, ARRAY (SELECT unnest(job.cases) ORDER BY 1), job.variants
  FROM job JOIN commit older ON older.id = job.reference_id JOIN commit newer ON newer.id = job.commit_id
 WHERE job.kind = 'compare' ORDER BY job.id
"""


@pytest.fixture
async def agent(history, enroll, reports):  # noqa: F811
    """An agent that measured the first commit of the trunk."""
    agent = await enroll("box")
    await history.upload(history.commit(1))
    job = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "standard", "timeout_s": 60}
    await history.client.post("/api/v1/jobs", json=job)
    first = await (await agent.take(kinds=KINDS)).report(measured(history, 1, agent))
    assert first.status_code == 201, first.text
    return agent


def measured(
    history, number, agent, *, release="0.1", facts=None, texts=None, method=None, subject=None, more=(), **parts
):
    """The report of a commit by an agent: its harness, the facts of its machine, texts of workloads, a method of times."""
    document = history.commit(number, **parts)
    document["harness"]["version"] = release
    if agent is not None:
        document["machine"] = copy.deepcopy(agent.machine)
        document["machine"]["facts"] = {"cpu": "fast", **(facts or {})}
    for workload in more:
        case = copy.deepcopy(document["cases"][0])
        case["case"]["workload"] = workload
        document["cases"].append(case)
    for case in document["cases"]:
        workload = case["case"]["workload"]
        for variant in case["variants"]:
            of_text = (texts or {}).get(workload, "one")
            variant["digests"] = {"workload": f"{workload}-{of_text}", "subject": subject or f"files-of-{number}"}
            if method is not None:
                variant["metrics"]["time"]["method"] = method
    return document


async def compared(database):
    async with database.reading() as session:
        return [tuple(row) for row in await session.execute(text(JOBS))]


async def answer(history, agent, document, log_ratio, outcome, *, reference):
    """Do the next job, a comparison."""
    claimed = (await agent.claim(kinds=KINDS)).json()
    response = await Lease(history.client, claimed, agent.machine).report(
        history.paired(document, log_ratio, outcome, reference=reference)
    )
    assert response.status_code == 201, response.text
    await history.look()


async def test_the_ends_of_an_edge_are_compared_once(history, agent, database, reports):
    await history.upload(*(measured(history, number, agent) for number in (2, 3)))
    assert await compared(database) == []
    newer = [measured(history, number, agent, release="0.2") for number in (4, 4, 5)]
    await history.upload(*newer[:2])
    edge = [(reports.sha(3), reports.sha(4), "standard", "confirm", CASES, VARIANTS)]
    assert await compared(database) == edge
    await history.upload(newer[2], measured(history, 4, agent, release="0.2"))
    assert await compared(database) == edge


async def test_commits_that_are_looked_at_together_have_one_edge(history, agent, database, reports):
    await history.client.post("/api/v1/reports", json=measured(history, 2, agent))
    for number in (3, 4, 5):
        await history.client.post("/api/v1/reports", json=measured(history, number, agent, release="0.2"))
    await history.look()
    assert [job[:2] for job in await compared(database)] == [(reports.sha(2), reports.sha(3))]


@pytest.mark.long
async def test_a_comparison_across_an_edge_raises_a_suspicion_that_is_measured_again(history, agent, database, reports):
    """Nothing spoke for it before, and it has many series: some of them are slower by chance."""
    await history.upload(measured(history, 2, agent), measured(history, 3, agent, release="0.2"))
    document = measured(history, 3, agent, release="0.2")
    await answer(history, agent, document, 0.2, "slower", reference=reports.sha(2))
    assert [(each.commit.sha, each.incident.state) for each in await history.incidents()] == [
        (reports.sha(3), "confirming")
    ]
    assert await history.told() == []
    assert (await compared(database))[1][:4] == (reports.sha(2), reports.sha(3), "standard", "confirm")
    await answer(history, agent, document | {"id": reports.report()["id"]}, 0.2, "slower", reference=reports.sha(2))
    assert [(each.commit.sha, each.incident.state) for each in await history.incidents()] == [
        (reports.sha(3), "confirmed")
    ]


@pytest.mark.long
async def test_what_a_second_measurement_does_not_bear_out_is_refuted_and_told_to_nobody(
    history, agent, database, reports
):
    await history.upload(measured(history, 2, agent), measured(history, 3, agent, release="0.2"))
    document = measured(history, 3, agent, release="0.2")
    await answer(history, agent, document, 0.05, "slower", reference=reports.sha(2))
    await answer(history, agent, document | {"id": reports.report()["id"]}, 0.0, "same", reference=reports.sha(2))
    assert [each.incident.state for each in await history.incidents()] == ["refuted"]
    assert await history.told() == []


@pytest.mark.long
async def test_of_another_text_of_a_workload_only_its_cases_are_compared(history, agent, database, reports):
    await history.upload(measured(history, 2, agent), measured(history, 3, agent, texts={"lstm": "two"}))
    assert [(*job[:2], job[4]) for job in await compared(database)] == [(reports.sha(2), reports.sha(3), CASES[1:])]


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("told", [{"facts": {"kernel": "6.9"}}, {"method": "mean of 3 processes"}])
async def test_other_facts_of_the_machine_and_another_method_are_edges(history, agent, database, reports, told):
    await history.upload(measured(history, 2, agent))
    await history.upload(measured(history, 3, agent, **told), measured(history, 4, agent, **told), look=True)
    assert [(*job[:2], job[4]) for job in await compared(database)] == [(reports.sha(2), reports.sha(3), CASES)]


@pytest.mark.parametrize("told", ["median of {} rounds", "mean of {} runs, as GradBench scores them", "mean of {}"])
async def test_another_number_of_values_is_no_edge(history, agent, database, reports, told):
    for number in (2, 3, 4):
        await history.upload(measured(history, number, agent, method=told.format(number)))
    assert [job[:2] for job in await compared(database)] == [(reports.sha(1), reports.sha(2))]  # no method before


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("other", [{"release": "0.2"}, {"facts": {"kernel": "6.9"}}, {"method": "mean"}])
async def test_a_level_that_is_reached_again_is_no_edge(history, agent, database, reports, other):
    """Two agents of one machine, or a release that was taken back: what was measured at a level compares with it."""
    known = {"facts": {"kernel": "6.8"}}
    for number in range(2, 10):
        told = known if number % 2 else known | other
        await history.upload(measured(history, number, agent, **told), look=True)
    edges = [job[:2] for job in await compared(database)]
    assert (reports.sha(3), reports.sha(4)) not in edges
    assert len(edges) <= 2  # the kernel that was not told of before is one


async def test_equal_code_asks_for_no_comparison(history, agent, database):
    for number, facts in ((2, {}), (3, {"kernel": "6.9"})):
        await history.upload(measured(history, number, agent, subject="the-same", facts=facts))
    assert await compared(database) == []


async def test_a_machine_without_time_measures_the_cases_that_moved_most_and_the_others_on_later_days(
    history, agent, database, reports, monkeypatch
):
    more = [f"other{place}" for place in range(8)]
    await history.upload(measured(history, 2, agent, more=more))
    async with database.writing.begin() as session:  # a bisection took the day
        await session.execute(text("UPDATE job SET origin = 'bisect', machine_id = (SELECT machine_id FROM attempt)"))
        await session.execute(text("SET LOCAL timezone = 'UTC'"))
        await session.execute(
            text("UPDATE attempt SET leased_at = current_date, ended_at = current_date + interval '2 hours'")
        )
    await history.upload(measured(history, 3, agent, more=more, ratio=-0.3, release="0.2"))
    (*_, cases, variants), (*ends, _, _, later, _) = await compared(database)
    assert (len(cases), variants) == (8, VARIANTS)
    assert CASES[1] in cases
    assert (ends, len(later)) == ([reports.sha(2), reports.sha(3)], 2)
    assert not {*cases} & {*later}
    await history.upload(measured(history, 4, agent, more=more, ratio=-0.3, release="0.3"))
    assert await days_later(database) == [None, 1, None, 2]  # of another edge too: no day has more than its share
    monkeypatch.setattr(level_comparisons, "GIVEN_UP_AFTER_DAYS", 2)
    with capture_logs() as lines:
        await history.upload(measured(history, 5, agent, more=more, ratio=-0.3, release="0.4"))
    assert [line["cases"] for line in lines if line["event"] == "edge_not_compared"] == [2]
    assert await days_later(database) == [None, 1, None, 2, None]
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE not_before IS NULL"))
    assert (await agent.claim(kinds=KINDS)).status_code == 204
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE job SET not_before = not_before - interval '1 day'"))
    assert sorted((await agent.take(kinds=KINDS)).claim["job"]["cases"]) == sorted(later)


async def days_later(database):
    """The days from today on which comparisons may begin."""
    async with database.reading() as session:
        return [
            *await session.scalars(
                text(
                    "SELECT (not_before AT TIME ZONE 'UTC')::date - (now() AT TIME ZONE 'UTC')::date FROM job"
                    " WHERE kind = 'compare' ORDER BY id"
                )
            )
        ]


async def test_cases_whose_levels_end_at_different_commits_are_compared_at_each_of_them(
    history, agent, database, reports
):
    """Also where one look finds all of them."""
    for number, texts in ((2, {}), (3, {"lstm": "two"}), (4, {"lstm": "two", "dense": "two"})):
        await history.client.post("/api/v1/reports", json=measured(history, number, agent, texts=texts))
    await history.look()
    assert [(*job[:2], job[4]) for job in await compared(database)] == [
        (reports.sha(2), reports.sha(3), CASES[1:]),
        (reports.sha(3), reports.sha(4), CASES[:1]),
    ]


async def test_a_case_that_comes_late_on_one_side_of_an_edge_is_compared_too(history, agent, database, reports):
    """Before the edge a second report has one more case; behind it one more variant."""
    whole = [measured(history, number, agent, release=f"0.{1 + (number > 2)}") for number in (2, 3, 4)]
    parts = copy.deepcopy(whole)
    late = whole[0] | {"id": reports.report()["id"], "cases": [{**whole[0]["cases"][0]}]}
    late["cases"][0]["case"] = late["cases"][0]["case"] | {"workload": "gru"}
    for document in parts[1:]:
        gru = copy.deepcopy(document["cases"][0])
        gru["case"]["workload"] = "gru"
        document["cases"] = [*document["cases"], gru]
    (lstm,) = (case for case in parts[1]["cases"] if case["case"]["workload"] == "lstm")
    lstm["variants"], lstm["paired"] = [each for each in lstm["variants"] if each["variant"] == "unfused"], []
    await history.upload(*parts[:2])
    assert [(*job[:2], job[4]) for job in await compared(database)] == [(reports.sha(2), reports.sha(3), CASES)]
    await history.upload(parts[2])
    await history.upload(late)
    gru = "gru[n=100,act=tanh,f4,cpu]"
    assert [(*job[:2], job[4]) for job in await compared(database)][1:] == [
        (reports.sha(2), reports.sha(4), CASES[1:]),
        (reports.sha(2), reports.sha(3), [gru]),
    ]


async def test_another_variant_of_a_case_that_comes_late_is_compared_too(history, agent, database, reports):
    await history.upload(measured(history, 2, agent))
    whole = measured(history, 3, agent, release="0.2")
    part = copy.deepcopy(whole) | {"id": reports.report()["id"]}
    for case in part["cases"]:
        case["variants"], case["paired"] = [each for each in case["variants"] if each["variant"] == "unfused"], []
    await history.upload(part)
    await history.upload(whole)
    assert [(*job[:2], *job[4:]) for job in await compared(database)] == [
        (reports.sha(2), reports.sha(3), CASES, ["unfused"]),
        (reports.sha(2), reports.sha(3), CASES, ["fused"]),
    ]


async def test_where_no_agent_can_measure_nothing_is_queued(history, database):
    await history.upload(measured(history, 1, None), measured(history, 2, None, release="0.2"))
    assert await compared(database) == []
