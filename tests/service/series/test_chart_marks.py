"""Many series as charts draw them say what each says by itself."""

import pytest
from tests.service.readings.making import mark_of

from pullback_service.ids import SeriesId
from pullback_service.series.chart_marks import drawn_points
from pullback_service.series.thinning import FEWEST_MARKS
from pullback_service.series.windows import Window, marks_in
from pullback_service.statements import Query

pytestmark = pytest.mark.anyio

NOTHING = Query("SELECT 1 WHERE false", {}, list, width=1)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("last", [1, 3, 100])
async def test_the_drawn_points_of_many_series_are_those_of_each(client, reports, session, last):
    for number in range(1, 2 * FEWEST_MARKS):
        report = reports.report(number)
        report["cases"][0]["variants"][1]["metrics"]["time"]["processes"] = [0.1 * (number % 7 + 1)]
        assert (await client.post("/api/v1/reports", json=report)).status_code == 201
    twice = reports.report(2 * FEWEST_MARKS - 1, id="00000000-0000-4000-8000-000000000001")
    twice["cases"][0]["variants"] = twice["cases"][0]["variants"][:1]
    twice["cases"][0]["paired"] = []
    assert (await client.post("/api/v1/reports", json=twice)).status_code == 201
    ids = [SeriesId(series["id"]) for series in (await client.get("/api/v1/series")).json()["items"]]
    found, _ = await drawn_points(session, [*ids, SeriesId(10**6)], last=last, at_most=FEWEST_MARKS, beside=NOTHING)
    assert found.pop(SeriesId(10**6)) == []
    for id_ in ids:
        each, _ = await marks_in(session, id_, Window(last=last), at_most=FEWEST_MARKS)
        assert [mark for mark, _ in found[id_]] == [mark_of(one.reading) for one in each]
        assert [commit for _, commit in found[id_]] == [one.commit for one in each]
        assert len(each) == min(last, len(each))
    assert any(len(found[id_]) > 1 for id_ in ids) == (last > 1)


@pytest.mark.parametrize("last", [1, 2])
async def test_the_oldest_mark_is_of_all_reports_of_its_commit(client, reports, session, last):
    busy = reports.report(1, quality="busy")
    busy["cases"][0]["variants"][1]["metrics"]["time"]["processes"] = [9.0]
    for report in [reports.report(1), busy, *(reports.report(number) for number in range(2, last + 1))]:
        assert (await client.post("/api/v1/reports", json=report)).status_code == 201
    chosen = {"metric": "time", "variant": "fused"}
    (series,) = (await client.get("/api/v1/series", params=chosen)).json()["items"]
    id_ = SeriesId(series["id"])
    drawn = (await drawn_points(session, [id_], last=last, at_most=FEWEST_MARKS, beside=NOTHING))[0][id_]
    assert [mark.value for mark, _ in drawn] == [0.6] * last
