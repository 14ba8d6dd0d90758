"""Points of one series: windows of history, pages, marks."""

from datetime import UTC, datetime

import pytest

from pullback_service.ids import SeriesId
from pullback_service.series import point_stream
from pullback_service.series.filters import SeriesChoice
from pullback_service.series.point_stream import points_of_series
from pullback_service.series.search import list_series
from pullback_service.series.windows import Window, marks_in, points_in

pytestmark = pytest.mark.anyio

URL = "/api/v1/series"


@pytest.fixture
def upload(client):
    async def upload(*reports):
        for report in reports:
            response = await client.post("/api/v1/reports", json=report)
            assert response.status_code == 201, response.text

    return upload


@pytest.fixture
async def points(client):
    """The points of the one series of fused times."""

    async def points(status=200, **window):
        (series,) = (await client.get(URL, params={"variant": "fused", "metric": "time"})).json()["items"]
        names = {name.rstrip("_"): value for name, value in window.items()}
        response = await client.get(f"{URL}/{series['id']}/points", params=names)
        assert response.status_code == status, response.text
        return response.json()

    return points


def numbers(page):
    return [int(point["commit"], 16) for point in page["items"]]


@pytest.fixture
async def history(upload, reports):
    """Ten commits of main, and one beside it."""
    beside = reports.report(5)
    beside["commit"] |= {"sha": reports.sha(105), "branch": "topic", "parents": [reports.sha(4)]}
    await upload(*(reports.report(number) for number in range(1, 11)), beside)


async def test_a_window_is_between_commits_named_by_hash_beginning_or_branch(history, points, reports):
    assert numbers(await points(from_=reports.sha(3), to=reports.sha(4))) == [3, 4]
    assert numbers(await points(from_=reports.sha(9), to="main")) == [9, 10]
    assert numbers(await points(to="topic", last=2)) == [5, 105]


async def test_a_branch_leaves_other_commits_out_and_tells_positions(history, points):
    page = await points(branch="main", from_=f"{4:040x}", to=f"{6:040x}")
    assert [(int(point["commit"], 16), point["position"]) for point in page["items"]] == [(4, 3), (5, 4), (6, 5)]
    assert [point["after_gap"] for point in page["items"]] == [False, False, False]
    everywhere = await points(from_=f"{4:040x}", to=f"{6:040x}")
    assert numbers(everywhere) == [4, 5, 105, 6]
    assert everywhere["items"][0]["position"] is None


async def test_the_last_commits_of_a_window_page_by_page(history, points):
    page = await points(branch="main", last=5, limit=2)
    seen = numbers(page)
    while page["next"]:
        page = await points(branch="main", last=5, limit=2, cursor=page["next"])
        seen += numbers(page)
    assert seen == [6, 7, 8, 9, 10]
    assert numbers(await points(branch="main", last=100)) == list(range(1, 11))
    assert numbers(await points(last=3, end="2026-01-05T00:00:00Z")) == [2, 3, 4]


async def test_reports_of_one_commit_are_one_point(upload, reports, points):
    first, second = reports.report(1), reports.report(1)
    second["cases"][0]["variants"][1]["metrics"]["time"]["processes"] = [0.8, 0.9]
    bad = reports.report(1, quality="busy")
    await upload(first, second, bad)
    (point,) = (await points())["items"]
    assert (point["value"], point["spread"]["n"], point["quality"]) == (pytest.approx(0.65), 8, "clean")
    assert len(point["report_ids"]) == 3
    assert point["raw"] is None
    (point,) = (await points(raw=True))["items"]
    assert [raw["quality"] for raw in point["raw"]] == ["clean", "clean", "busy"]
    assert point["raw"][1]["process_values"] == [0.8, 0.9]
    assert [raw["report_id"] for raw in point["raw"]] == point["report_ids"]


async def test_many_reports_of_a_commit_hide_no_other_commit(upload, reports, points):
    await upload(*(reports.report(number) for number in (1, 1, 2, 2, 2, 2, 3)))
    page = await points(limit=2)
    seen = page["items"]
    while page["next"]:
        page = await points(limit=2, cursor=page["next"])
        seen += page["items"]
    assert numbers({"items": seen}) == [1, 2, 3]
    assert [len(point["report_ids"]) for point in seen] == [2, 4, 1]


@pytest.mark.long
async def test_marks_keep_extremes_of_values_and_ratios(upload, reports, points):
    uploads = [reports.report(number) for number in range(1, 61)]
    uploads[40]["cases"][0]["variants"][1]["metrics"]["time"]["processes"] = [9.0]
    uploads[41]["cases"][0]["paired"][0] |= {"log_ratio": 0.7, "low": 0.69, "high": 0.71, "outcome": "slower"}
    await upload(*uploads)
    page = await points(marks=24)
    assert len(page["items"]) <= 24
    assert (page["thinned_from"], page["next"]) == (60, None)
    shown = numbers(page)
    assert {1, 41, 42, 60} <= set(shown)
    assert shown == sorted(shown)
    assert next(point for point in page["items"] if int(point["commit"], 16) == 41)["value"] == 9.0
    page = await points(marks=24, last=20)
    assert (len(page["items"]), page["thinned_from"]) == (20, None)
    assert numbers(await points(marks=24, start="2027-01-01T00:00:00Z")) == []


async def test_a_window_too_large_to_be_thinned_is_refused(history, points, monkeypatch):
    monkeypatch.setattr("pullback_service.series.windows.MOST_IN_WINDOW", 10)
    problem = await points(status=422, marks=100)
    assert "narrow it, for example with last=5" in problem["detail"]
    assert len((await points(marks=100, last=10))["items"]) == 10


async def test_what_does_not_hold_is_refused(history, points):
    for window, status, said in (
        ({"marks": 15}, 422, "query.marks"),
        ({"marks": 5001}, 422, "query.marks"),
        ({"last": 0}, 422, "query.last"),
        ({"from_": "nowhere"}, 404, "neither a commit nor a branch"),
        ({"to": "0000000"}, 422, "give more digits"),
        ({"from_": "f" * 40}, 404, "Unknown commit"),
        ({"branch": "nowhere"}, 404, "neither a commit nor a branch"),
        ({"cursor": "nonsense"}, 422, "Invalid cursor"),
    ):
        assert said in str(await points(status=status, **window))
    cursor = (await points(limit=1))["next"]
    assert "cannot be combined" in (await points(status=422, marks=100, cursor=cursor))["detail"]


async def test_a_page_takes_two_statements_and_marks_three(history, session, count_statements):
    async with count_statements() as statements:
        _, more = await points_in(session, SeriesId(1), Window(), after=None, limit=5)
    assert (len(statements), more) == (2, True)
    async with count_statements() as statements:
        _, of = await marks_in(session, SeriesId(1), Window(), at_most=100)
    assert (len(statements), of) == (3, 11)


async def test_series_take_one_statement_together_for_their_counts_and_one_for_their_points(
    upload, reports, session, count_statements
):
    await upload(reports.report(1, cases=[reports.case(f"work{number}") for number in range(100)]))
    everywhere, nowhere = Window(), Window(start=datetime(2030, 1, 1, tzinfo=UTC))
    choice = SeriesChoice(project="demo")
    async with count_statements() as statements:
        found, following, series = await points_of_series(session, choice, everywhere, at=None, limit=1000)
    names = [(stored.case.workload, stored.series.variant, stored.series.metric) for stored, _ in found]
    assert (len(names), names, following) == (400, sorted(set(names)), None)
    # Of 50, 200 and 150 series: the project, its series, how many points each has, the points, and of what they are.
    assert len(statements) == 3 * 5
    assert series == 800
    async with count_statements() as statements:
        assert await points_of_series(session, choice, nowhere, at=None, limit=10) == (
            [],
            (found[50][0].series.id, None),
            50,
        )
    assert len(statements) == 3


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("limit", [1, 7, 11, 12, 1000])
async def test_pages_of_many_series_hold_the_points_of_one_series_after_the_other(history, session, monkeypatch, limit):
    monkeypatch.setattr(point_stream, "FEWEST_SERIES", 2)
    choice, day = SeriesChoice(project="demo"), datetime(2026, 1, 5, tzinfo=UTC)
    series = [SeriesId(stored.series.id) for stored in await list_series(session, choice, limit=9)]
    assert len(series) == 4
    for window in (Window(), Window(last=3), Window(last=3, end=day), Window(branch_id=1), Window(branch_id=1, last=4)):
        each = [await points_in(session, id_, window, after=None, limit=1000, raw=True) for id_ in series]
        walked, pages, at = [], 0, None
        while at is not None or not pages:
            page, at, _ = await points_of_series(session, choice, window, at=at, limit=limit, raw=True)
            assert len(page) <= limit
            assert all(stored.series.id == point.reading.series_id for stored, point in page)
            walked, pages = [*walked, *(point for _, point in page)], pages + 1
        assert walked == [point for points, _ in each for point in points]
        assert len(walked) >= 4 * 3
