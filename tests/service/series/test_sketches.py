"""Sketches of a case on several machines: the newest commits, in places that all of them share."""

import pytest
from sqlalchemy import select

from pullback_service.ids import ProjectId
from pullback_service.models import Project
from pullback_service.series.case_history import cases_of_workload
from pullback_service.series.sketches import sketches_of
from pullback_service.statements import answer

pytestmark = pytest.mark.anyio


@pytest.fixture
def sketched(client, session):
    """Upload reports, and sketch their case on all machines or on the first ones."""

    async def sketched(*reports, metric="time", last=10, machines=None):
        for report in reports:
            response = await client.post("/api/v1/reports", json=report)
            assert response.status_code == 201, response.text
        project = ProjectId(await session.scalar(select(Project.id).where(Project.name == "demo")))
        ((case, known),) = (await answer(session, cases_of_workload(project, "dense_bias_act"))).items()
        return await answer(session, sketches_of(case.id, metric, sorted(known)[:machines], last=last))

    return sketched


async def test_machines_are_sketched_side_by_side(sketched, reports):
    sketches = await sketched(
        reports.report(1, machine="big"), reports.report(2, machine="small"), reports.report(3, machine="small"), last=2
    )
    assert len({sketch.machine_id for sketch in sketches}) == 2
    fused = [sketch for sketch in sketches if sketch.variant == "fused"]
    assert sorted(sketch.places for sketch in fused) == [[0], [1, 2]]
    assert all(len(one.places) == len(one.values) == len(one.log_ratios) for one in sketches)


async def test_a_variant_that_was_not_measured_at_a_commit_has_a_gap_there(sketched, reports):
    alone = reports.case(variants=[reports.variant("unfused")], paired=[])
    sketches = await sketched(
        reports.report(3), reports.report(1), reports.report(2, cases=[alone]), metric="array_bytes"
    )
    by_variant = {one.variant: one for one in sketches}
    assert by_variant["unfused"].places == [0, 1, 2]
    assert by_variant["fused"].places == [0, 2]
    assert by_variant["fused"].values == [1024.0, 1024.0]
    assert by_variant["unfused"].log_ratios == [None] * 3  # the baseline


async def test_only_the_newest_commits_the_metric_and_the_machines_asked_for_are_sketched(sketched, reports):
    counted = [
        reports.report(
            number,
            machine="big" if number < 5 else "small",
            cases=[reports.case(variants=[reports.variant("unfused", array_bytes=1000.0 * number)], paired=[])],
        )
        for number in range(1, 6)
    ]
    (only,) = await sketched(*counted, metric="array_bytes", last=3, machines=1)
    assert (only.variant, only.places, only.values) == ("unfused", [0, 1, 2], [2000.0, 3000.0, 4000.0])
