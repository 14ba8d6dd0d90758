"""What a detector will be shown after an upload."""

from uuid import UUID

import pytest
from sqlalchemy import select

from pullback_service.chores import detecting, following_up
from pullback_service.chores.detecting import detect_after, histories_touched_by
from pullback_service.models import Commit

pytestmark = pytest.mark.anyio


async def upload(client, report):
    response = await client.post("/api/v1/reports", json=report)
    assert response.status_code == 201, response.text
    return UUID(response.json()["id"])


@pytest.fixture
def measured(reports):
    def measured(number, seconds, **parts):
        variants = [reports.variant("unfused"), reports.variant("fused", seconds=seconds)]
        return reports.report(number, cases=[reports.case(variants=variants, log_ratio=-0.1 * number)], **parts)

    return measured


async def test_every_series_of_a_report_comes_with_its_arrays_in_the_order_of_history(client, measured, session):
    ids = {number: await upload(client, measured(number, [number, number + 0.5])) for number in (3, 1, 4)}
    late = await upload(client, measured(2, [2.0, 2.5]))
    found = [each async for each in histories_touched_by(session, late)]
    assert sorted((each.metric, each.exact, each.unit, each.direction) for each in found) == [
        *[("array_bytes", True, "B", "smaller")] * 2,
        *[("time", False, "s", "smaller")] * 2,
    ]
    (fused,) = [each for each in found if each.values[0] == 1.25]
    places = (await session.scalars(select(Commit.id).order_by(Commit.ordered_at))).all()
    assert list(fused.commits) == list(places)
    assert fused.values == [1.25, 2.25, 3.25, 4.25]
    assert fused.log_ratios == pytest.approx([-0.1, -0.2, -0.3, -0.4])
    assert fused.touched == [1]
    assert (fused.clean, fused.low) == ([True] * 4, pytest.approx([-0.11, -0.21, -0.31, -0.41]))
    (newest,) = [each async for each in histories_touched_by(session, ids[4]) if each.values[0] == 1.25]
    assert newest.touched == [3]


async def test_reports_at_one_commit_are_one_place(client, measured, session):
    await upload(client, measured(1, [1.0, 2.0, 3.0]))
    noisy = await upload(client, measured(1, [9.0], quality="contaminated"))
    more = await upload(client, measured(1, [8.0, 9.0]))
    for report_id in (noisy, more):
        found = [each async for each in histories_touched_by(session, report_id)]
        (fused,) = [each for each in found if 3.0 in each.values]
        assert (fused.values, fused.touched, fused.clean) == ([3.0], [0], [True])
    await upload(client, measured(2, [9.0], quality="contaminated"))
    (fused,) = [each async for each in histories_touched_by(session, more) if 3.0 in each.values]
    assert (fused.touched, fused.clean) == ([0], [True, False])


async def test_only_the_newest_commits_are_shown(client, measured, session, monkeypatch):
    monkeypatch.setattr(detecting, "MOST_COMMITS", 2)
    monkeypatch.setattr(detecting, "SERIES_AT_ONCE", 1)
    for number in (1, 2, 3):
        last = await upload(client, measured(number, [float(number)]))
    found = [each async for each in histories_touched_by(session, last)]
    assert [len(each.commits) for each in found] == [2] * 4
    assert [2.0, 3.0] in [each.values for each in found]


async def test_detectors_are_called_for_each_series_in_the_transaction_of_the_follow_up(
    client, measured, session, monkeypatch
):
    report_id = await upload(client, measured(1, [1.0]))
    seen = []

    async def detect(inside, touched):
        assert inside is session
        seen.append(touched.metric)

    await detect_after(session, report_id)
    assert seen == []
    await detect_after(session, report_id, [detect])
    assert sorted(seen) == ["array_bytes", "array_bytes", "time", "time"]
    monkeypatch.setattr(following_up, "detect_after", lambda *given: detect_after(*given, [detect, detect]))
    await following_up.follow_up(session, report_id)
    assert len(seen) == 12
