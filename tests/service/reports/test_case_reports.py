"""A case at a commit, and its neighbours in history on the same machine."""

import pytest

from pullback_service import statements
from pullback_service.commits.queries import commit_by_sha
from pullback_service.errors import NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.projects.queries import project_by_name
from pullback_service.reports.case_reports import case_called, place_of_case

pytestmark = pytest.mark.anyio
LABEL = "dense_bias_act[n=100,act=tanh,f4,cpu]"
FAILED = {"kind": "gradient", "message": "off by 1e-3"}


@pytest.fixture
async def at(client, session, reports):
    """Upload reports, then ask for the case at the commit of a number."""

    async def asked(number, *uploads, machine=None):
        for upload in uploads:
            (await client.post("/api/v1/reports", json=upload)).raise_for_status()
        project_id = ProjectId((await project_by_name(session, "demo")).id)
        commit = await commit_by_sha(session, project_id, reports.sha(number))
        case = await statements.answer(session, case_called(project_id, LABEL))
        return await place_of_case(session, project_id, case, commit, machine=machine)

    return asked


async def test_neighbours_are_those_in_history_not_in_order_of_arrival(at, reports):
    place = await at(2, reports.report(3), reports.report(1), reports.report(2))
    assert (place.before.commit.sha, place.after.commit.sha) == (reports.sha(1), reports.sha(3))


async def test_the_first_and_the_last_have_one_neighbour(at, reports):
    first = await at(1, reports.report(1), reports.report(2))
    assert first.before is None
    assert first.after.commit.sha == reports.sha(2)


async def test_another_machine_is_no_neighbour(at, reports):
    place = await at(2, reports.report(1, machine="other"), reports.report(2))
    assert place.before is None


async def test_the_machine_can_be_chosen_else_the_newest_upload_speaks(at, reports):
    newer = reports.report(2, machine="two", started_at="2026-02-01T12:00:01Z")
    place = await at(2, reports.report(2, machine="one"), newer)
    assert place.here.machine == "two"
    assert (await at(2, machine="one")).here.machine == "one"


async def test_a_clean_upload_speaks_before_busy_ones_that_came_later(at, reports):
    first, clean = reports.report(2), reports.report(2)
    place = await at(
        2,
        *(reports.report(1, quality="busy"), first, clean, reports.report(2, quality="busy")),
        *(reports.report(3), reports.report(3, quality="busy")),
    )
    assert str(place.here.report_id) == clean["id"]
    assert (place.before is not None, place.after is not None) == (True, True)
    assert (await at(3)).before == place.here


async def test_a_busy_upload_chooses_the_machine_that_came_last(at, reports):
    place = await at(
        2, reports.report(2, machine="one"), reports.report(2, machine="two", started_at="2026-02-01T12:00:01Z"),
        reports.report(2, machine="one", quality="busy", started_at="2026-02-01T12:00:02Z"),
    )  # fmt: skip
    assert place.here.machine == "one"


async def test_a_case_that_failed_is_found_but_is_no_neighbour(at, reports):
    failed = reports.case(error=FAILED, variants=[], paired=[])
    place = await at(2, reports.report(1), reports.report(2, cases=[failed]), reports.report(3))
    assert place.here.commit.sha == reports.sha(2)
    assert (await at(3)).before.commit.sha == reports.sha(1)


async def test_what_was_not_measured_there_is_refused(at, reports):
    with pytest.raises(NotFoundError, match="No upload measured .* at 000000000"):
        await at(1, reports.report(1, cases=[reports.case("another")]), reports.report(2))
    with pytest.raises(NotFoundError, match="on machine 'nobody'"):
        await at(2, machine="nobody")
