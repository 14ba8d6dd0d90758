"""What the overview reads: chosen cases, how they stand, what changed."""

import pytest
from sqlalchemy import select

from pullback_service.ids import ProjectId
from pullback_service.models import Project
from pullback_service.series import overviewing, queries
from pullback_service.series.overviewing import CaseChoice

pytestmark = pytest.mark.anyio


async def upload(client, *reports):
    for report in reports:
        response = await client.post("/api/v1/reports", json=report)
        assert response.status_code == 201, response.text


async def here(session, name=None):
    """The project and a machine that measured it."""
    project = ProjectId(await session.scalar(select(Project.id).where(Project.name == "demo")))
    machines = await queries.measuring_machines(session, project)
    return project, next(machine.id for machine in machines if name in {None, machine.name})


async def labels(session, **choice):
    project, machine = await here(session)
    return [case.workload for case in await overviewing.cases_of(session, project, machine, CaseChoice(**choice))]


async def test_cases_are_chosen_by_words_suite_and_device(client, reports, session):
    night = reports.report(2, cases=[reports.case("dense_bias_act"), reports.case("conv")])
    night["harness"]["suite"] = "standard"
    quick = reports.report(1, cases=[reports.case("dense_bias_act"), reports.case("lstm")])
    quick["harness"]["suite"] = "quick"
    await upload(client, quick, night)
    assert await labels(session) == ["conv", "dense_bias_act", "lstm"]
    assert await labels(session, text="bias") == ["dense_bias_act"]
    assert await labels(session, suite="standard") == ["conv", "dense_bias_act"]
    assert await labels(session, device="tpu") == []
    project, machine = await here(session)
    assert await overviewing.suites_of(session, project, machine) == ["quick", "standard"]
    assert await overviewing.devices_of(session, project) == ["cpu"]


async def test_a_case_stands_at_its_newest_commit_as_the_matrix_says(client, reports, session):
    cases = [reports.case("a", log_ratio=-0.1), reports.case("b", log_ratio=-0.2)]
    other = reports.case("a", variants=[reports.variant("unfused", seconds=(5.0, 6.0))], paired=[])
    await upload(
        client, reports.report(1, cases=cases), reports.report(2, cases=cases[:1]), reports.report(2, cases=[other])
    )
    project, machine = await here(session)
    known = await overviewing.cases_of(session, project, machine, CaseChoice())
    stood = await overviewing.standings(session, machine, [case.id for case in known], "time")
    matrix = {
        (cell.case.id, cell.variant): (cell.log_ratio, cell.commit.id)
        for cell in (await queries.latest_matrix(session, project)).cells
        if cell.metric == "time"
    }
    assert {(one.case_id, one.variant): (one.log_ratio, one.commit_id) for one in stood} == matrix
    assert {metric.name for metric in await overviewing.metrics_of(session, machine, [known[0].id])} >= {
        "time",
        "array_bytes",
    }


async def test_all_cases_stand_in_one_statement(client, reports, session, count_statements):
    await upload(client, *(reports.report(n, cases=[reports.case(f"w{i}") for i in range(8)]) for n in range(1, 6)))
    project, machine = await here(session)
    known = await overviewing.cases_of(session, project, machine, CaseChoice())
    async with count_statements() as statements:
        stood = await overviewing.standings(session, machine, [case.id for case in known], "time")
    assert len(statements) == 1
    assert "LATERAL" in statements[0]
    assert len(stood) == 16


async def test_commits_that_a_machine_measured_come_oldest_first(client, reports, session):
    await upload(client, *(reports.report(number) for number in (3, 1, 2)), reports.report(4, machine="other"))
    project, machine = await here(session, "box")
    commits = await overviewing.measured_commits(session, project, machine, limit=2)
    assert [commit.sha for commit in commits] == [reports.sha(2), reports.sha(3)]


async def test_series_that_changed_are_counts_that_differ_and_ratios_that_moved(client, reports, session):
    calm, moved = (reports.case("calm", log_ratio=-0.5), reports.case("moved", log_ratio=-0.9))
    await upload(client, reports.report(1, cases=[calm, moved]))
    moved_again = reports.case("moved", log_ratio=-0.1)
    await upload(client, reports.report(2, cases=[reports.case("calm", log_ratio=-0.505), moved_again]))
    project, machine = await here(session)
    commits = await overviewing.measured_commits(session, project, machine, limit=6)
    ids = [commit.id for commit in commits]
    changed = await overviewing.changed_series(session, machine, ids, floor=0.02)
    cells = await overviewing.lines_of(session, changed, commits[0])
    assert {(cell.case.workload, cell.variant, cell.metric) for cell in cells} == {("moved", "fused", "time")}
    assert len(cells) == 2
    assert await overviewing.changed_series(session, machine, ids[-1:], floor=0.02) == []


async def test_sessions_speak_of_their_candidate(client, reports, session):
    report = reports.report(2)
    report["comparisons"] = [
        {
            "case": report["cases"][0]["case"], "variant": "fused", "metric": "time", "reference": reports.sha(1),
            "candidate": reports.sha(2), "log_ratio": 0.03, "low": 0.02, "high": 0.04, "n": 20, "outcome": "slower",
        }
    ]  # fmt: skip
    await upload(client, reports.report(1), report)
    project, machine = await here(session)
    first, second = await overviewing.measured_commits(session, project, machine, limit=2)
    (stated,) = await overviewing.comparisons_at(session, machine, [first.id, second.id])
    assert (stated.outcome, stated.reference, stated.candidate_id) == ("slower", reports.sha(1), second.id)
    assert await overviewing.comparisons_at(session, machine, [first.id]) == []
