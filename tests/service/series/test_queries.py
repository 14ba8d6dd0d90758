"""What pages read: the newest matrix and the history of a workload, in a fixed number of statements."""

import pytest
from sqlalchemy import select, text

from pullback_service.ids import ProjectId
from pullback_service.models import Machine, Project
from pullback_service.series import queries
from pullback_service.statements import answer

pytestmark = pytest.mark.anyio


async def upload(client, *reports):
    for report in reports:
        response = await client.post("/api/v1/reports", json=report)
        assert response.status_code == 201, response.text


async def project_id(session):
    return ProjectId(await session.scalar(select(Project.id).where(Project.name == "demo")))


def times(cells, variant="fused"):
    return {cell.case.workload: cell for cell in cells if cell.variant == variant and cell.metric == "time"}


async def test_the_matrix_shows_each_case_at_the_newest_commit_that_has_it(client, reports, session):
    await upload(
        client,
        reports.report(3, cases=[reports.case("a")]),
        reports.report(1, cases=[reports.case("a", log_ratio=-0.1), reports.case("b", log_ratio=-0.2)]),
    )
    matrix = await queries.latest_matrix(session, await project_id(session))
    cells = times(matrix.cells)
    assert cells["a"].commit.sha == reports.sha(3)  # newest in history, though not the last to arrive
    assert cells["b"].commit.sha == reports.sha(1)
    assert len(matrix.cells) == 8
    assert matrix.failures == []


async def test_a_cell_says_everything_about_itself(client, reports, session):
    await upload(client, reports.report(1))
    matrix = await queries.latest_matrix(session, await project_id(session))
    cell = times(matrix.cells)["dense_bias_act"]
    assert cell.case.label == "dense_bias_act[n=100,act=tanh,f4,cpu]"
    assert cell.case.params == {"n": 100, "act": "tanh"}
    assert (cell.unit, cell.direction, cell.exact, cell.variant_kind) == ("s", "smaller", False, "tier")
    reading = cell.reading
    assert (reading.value, reading.spread.n, reading.spread.low, reading.spread.high) == (0.6, 3, 0.5, 0.7)
    assert (reading.baseline, reading.ratio) == ("unfused", (-0.5, -0.51, -0.49, 20))
    assert (reading.outcome, reading.quality, reading.dirty) == ("faster", "clean", False)
    assert (cell.machine.name, cell.commit.title) == ("box", "Change 1")


async def test_several_reports_at_one_commit_are_one_cell(client, reports, session):
    await upload(client, reports.report(1), reports.report(1, quality="busy"), reports.report(1))
    matrix = await queries.latest_matrix(session, await project_id(session))
    cell = times(matrix.cells)["dense_bias_act"]
    assert len(matrix.cells) == 4
    assert cell.reading.spread.n == 9
    assert len(cell.report_ids) == 3
    assert cell.reading.quality == "clean"


async def test_machines_stay_apart_and_one_can_be_asked_for(client, reports, session):
    await upload(client, reports.report(1, machine="big"), reports.report(2, machine="small"))
    here = await project_id(session)
    assert len((await queries.latest_matrix(session, here)).cells) == 8
    small = await session.scalar(select(Machine.id).where(Machine.name == "small"))
    cells = (await queries.latest_matrix(session, here, machines=[small])).cells
    assert {cell.machine.name for cell in cells} == {"small"}


async def test_the_matrix_shows_failures_newer_than_the_last_measurement_only(client, reports, session):
    broken = reports.case("a", error={"kind": "workload", "message": "broke"}, variants=[], paired=[])
    never = reports.case("never", error={"kind": "missing", "message": "no such rule"}, variants=[], paired=[])
    await upload(
        client,
        reports.report(1, cases=[broken]),
        reports.report(2, cases=[reports.case("a")]),
        reports.report(3, cases=[broken, never]),
    )
    matrix = await queries.latest_matrix(session, await project_id(session))
    assert {(failure.case.workload, failure.commit.sha) for failure in matrix.failures} == {
        ("a", reports.sha(3)),
        ("never", reports.sha(3)),
    }
    assert times(matrix.cells)["a"].commit.sha == reports.sha(2)


async def test_other_projects_are_not_seen(client, reports, session):
    await upload(client, reports.report(1), reports.report(1, project="other", cases=[reports.case("secret")]))
    here = await project_id(session)
    matrix = await queries.latest_matrix(session, here)
    assert {cell.case.workload for cell in matrix.cells} == {"dense_bias_act"}
    assert await queries.workloads(session, here) == ["dense_bias_act"]


async def test_a_matrix_takes_a_fixed_number_of_statements(client, reports, session, count_statements):
    cases = [reports.case(f"workload {index}") for index in range(10)]
    await upload(client, *(reports.report(number, cases=cases) for number in range(1, 6)))
    here = await project_id(session)
    async with count_statements() as statements:
        await queries.latest_matrix(session, here)
    assert len(statements) == 5  # readings, failures, and the cases, commits and machines of them


@pytest.mark.long
async def test_the_newest_reading_of_a_series_is_found_by_its_index(client, reports, session):
    cases = [reports.case(f"workload {index}") for index in range(10)]
    await upload(client, *(reports.report(number, cases=cases) for number in range(1, 31)))
    await session.execute(text("ANALYZE"))
    plan = "\n".join(
        await session.scalars(
            text(
                "EXPLAIN SELECT p.ordered_at, p.commit_id FROM series s CROSS JOIN LATERAL (SELECT ordered_at, "
                "commit_id FROM reading WHERE series_id = s.id ORDER BY ordered_at DESC, commit_id DESC LIMIT 1) p"
            )
        )
    )
    assert "ix_reading_series_history" in plan
    assert "Sort" not in plan


async def test_machines_are_listed_by_the_newest_commit_of_their_uploads(client, reports, session):
    await upload(
        client, reports.report(3, machine="small"), reports.report(2, machine="big"), reports.report(1, machine="big")
    )
    here = await project_id(session)
    machines = await answer(session, queries.machines_of(here))
    assert [machine.name for machine in machines] == ["small", "big"]
    assert machines[0].newest > machines[1].newest


@pytest.mark.long
async def test_each_series_enters_its_own_index_for_the_matrix(client, reports, session, count_statements):
    cases = [reports.case(f"workload {index}") for index in range(10)]
    await upload(client, *(reports.report(number, cases=cases) for number in range(1, 31)))
    await session.execute(text("ANALYZE"))
    here = await project_id(session)
    async with count_statements() as statements:
        await queries.latest_matrix(session, here)
    assert "LATERAL" in statements[0]
    assert "OFFSET" in statements[0]  # keeps the planner from joining points by commit alone
