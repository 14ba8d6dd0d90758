"""What is stored beside the raw values can be made again from them."""

import pytest
from sqlalchemy import select, update

from pullback_service import database_rebuild
from pullback_service.models import Point

pytestmark = pytest.mark.anyio


async def everything(session, *, write):
    looked_at, changed, last = 0, 0, 0
    while True:
        batch = await database_rebuild.rebuild_values(session, after_id=last, write=write)
        looked_at, changed = looked_at + batch.looked_at, changed + batch.changed
        if batch.last_id is None:
            return looked_at, changed
        last = batch.last_id


async def test_values_are_made_again_bit_for_bit(client, reports, database, monkeypatch):
    monkeypatch.setattr(database_rebuild, "VALUES_AT_ONCE", 3)
    uneven = reports.variant("fused", seconds=[0.1, 0.3, 0.7, 0.2])
    for number in range(1, 5):
        case = reports.case(variants=[reports.variant("unfused"), uneven])
        assert (await client.post("/api/v1/reports", json=reports.report(number, cases=[case]))).status_code == 201
    async with database.writing.begin() as session:
        before = {row.id: row[1] for row in await session.execute(select(Point.id, Point.value))}
        assert await everything(session, write=True) == (8, 0)
        wrong = sorted(before)[::3]
        await session.execute(update(Point).where(Point.id.in_(wrong)).values(value=99.0))
        noisy = len(
            (
                await session.scalars(select(Point.id).where(Point.id.in_(wrong), Point.process_values.is_not(None)))
            ).all()
        )
        await session.execute(
            update(Point).where(Point.process_values.is_(None), Point.value == 99.0).values(value=4096.0)
        )
        assert await everything(session, write=False) == (8, noisy)
        assert await everything(session, write=True) == (8, noisy)
        assert await everything(session, write=True) == (8, 0)
        after = {row.id: row[1] for row in await session.execute(select(Point.id, Point.value))}
        exact = {row.id for row in await session.execute(select(Point.id).where(Point.process_values.is_(None)))}
    assert {key: value for key, value in after.items() if key not in exact} == {
        key: value for key, value in before.items() if key not in exact
    }
