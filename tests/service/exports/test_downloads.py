"""Any query as a file."""

import csv
import io
import json
import sys

import pytest

pytestmark = pytest.mark.anyio

LISTED = (
    "/api/v1/series?project=demo",
    "/api/v1/series/facets?project=demo",
    "/api/v1/series/1/points",
    "/api/v1/points?project=demo",
    "/api/v1/matrix?project=demo",
    f"/api/v1/comparisons?project=demo&base={1:040x}&head={2:040x}",
)


@pytest.fixture
async def measured(client, reports):
    """Three commits of two workloads."""
    for number in (1, 2, 3):
        upload = reports.report(number, cases=[reports.case("a"), reports.case("=b()")])
        assert (await client.post("/api/v1/reports", json=upload)).status_code == 201
    return client


def table(response):
    assert response.status_code == 200, response.text
    return list(csv.DictReader(io.StringIO(response.text)))


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("url", LISTED)
async def test_every_query_is_a_file_in_every_format(measured, url):
    more = "&" if "?" in url else "?"
    as_csv = await measured.get(f"{url}{more}format=csv&limit=1")
    assert as_csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert as_csv.headers["content-disposition"].startswith('attachment; filename="')
    assert as_csv.headers["cache-control"] == "private, no-cache"
    as_json = await measured.get(f"{url}{more}format=json")
    assert as_json.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in as_json.text.splitlines()]
    rows = table(as_csv)
    assert len(rows) == len(lines) > 1
    assert list(rows[0]) == list(lines[0])
    if "facets" not in url:
        assert {"unit", "machine", "project"} <= set(rows[0])
        assert all(line["project"] == "demo" for line in lines)
    arrow = pytest.importorskip("pyarrow.parquet", reason="NO PARQUET TESTS: pip install 'pullback[parquet]'")
    as_parquet = await measured.get(f"{url}{more}format=parquet")
    assert as_parquet.headers["content-type"] == "application/vnd.apache.parquet"
    read = arrow.read_table(io.BytesIO(as_parquet.content)).to_pylist()
    assert [row.get("value") for row in read] == [line.get("value") for line in lines]


async def test_points_come_with_what_they_are_of(measured, reports):
    rows = table(await measured.get("/api/v1/points?project=demo&metric=time&variant=fused&last=2&format=csv"))
    placed = [(row["workload"], int(row["commit"], 16)) for row in rows]
    assert sorted(placed) == [("'=b()", 2), ("'=b()", 3), ("a", 2), ("a", 3)]
    row = rows[placed.index(("a", 2))]
    assert (row["unit"], row["machine"], row["device"], row["params"]) == ("s", "box", "cpu", '{"act":"tanh","n":100}')
    assert (row["value"], row["processes"], row["smallest"], row["largest"]) == ("0.6", "3", "0.5", "0.7")
    assert (row["log_ratio"], float(row["factor"]), row["outcome"]) == ("-0.5", pytest.approx(0.6065307), "faster")


async def test_raw_points_have_a_row_a_report(measured, reports):
    await measured.post("/api/v1/reports", json=reports.report(1, cases=[reports.case("a")]))
    asked = "project=demo&workload=a&variant=fused&metric=time&raw=true&format=json"
    answer = await measured.get(f"/api/v1/points?{asked}")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [int(line["commit"], 16) for line in lines] == [1, 1, 2, 3]
    assert len({line["report_id"] for line in lines}) == 4


async def test_all_rows_are_there_whatever_a_batch_holds(measured, monkeypatch):
    for place in ("endpoints.series", "endpoints.comparisons"):
        monkeypatch.setattr(f"pullback_service.{place}.HIGHEST_LIMIT", 3)
    monkeypatch.setattr("pullback_service.endpoints.series.POINTS_AT_ONCE", 3)
    monkeypatch.setattr("pullback_service.series.point_stream.FEWEST_SERIES", 2)
    assert len(table(await measured.get("/api/v1/series?format=csv"))) == 8
    points = table(await measured.get("/api/v1/points?project=demo&format=csv"))
    assert len(points) == len({(point["series_id"], point["commit"]) for point in points}) == 24
    assert len(table(await measured.get("/api/v1/series/1/points?format=csv"))) == 3
    assert len(table(await measured.get("/api/v1/matrix?project=demo&format=csv&limit=1"))) == 8
    assert len(table(await measured.get(f"{LISTED[-1]}&format=csv"))) == 8


async def test_points_of_many_series_come_in_pages_too(measured):
    asked, seen = {"project": "demo", "branch": "main", "limit": 5}, []
    while True:
        page = (await measured.get("/api/v1/points", params=asked)).json()
        seen += [(item["series"]["id"], item["point"]["commit"]) for item in page["items"]]
        if page["next"] is None:
            break
        asked["cursor"] = page["next"]
    assert seen == sorted(seen)
    assert len(seen) == len(set(seen)) == 24


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("text/csv", "text/csv; charset=utf-8"),
        ("application/json;q=0.5, text/csv", "text/csv; charset=utf-8"),
        ("application/x-ndjson", "application/x-ndjson"),
        ("application/json, text/csv", "application/json"),
        ("text/csv;q=0.1, */*", "application/json"),
        ("text/csv;q=nonsense, application/json", "application/json"),
        ("text/html", "application/json"),
        ("", "application/json"),
    ],
)
async def test_accept_chooses_the_format(measured, accept, expected):
    answer = await measured.get("/api/v1/series", headers={"Accept": accept})
    assert answer.headers["content-type"] == expected


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("/api/v1/series?format=xlsx", 422),
        ("/api/v1/series?project=demo&branch=nowhere&format=csv", 404),
        ("/api/v1/series/99/points?format=csv", 404),
        ("/api/v1/points?format=csv", 422),
        ("/api/v1/matrix?project=nothing&format=csv", 404),
        ("/api/v1/comparisons?project=demo&head=nowhere&format=csv", 404),
    ],
)
async def test_what_does_not_hold_is_a_problem_and_no_file(measured, url, status):
    answer = await measured.get(url)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


async def test_parquet_without_its_library_is_a_problem(measured, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = await measured.get("/api/v1/series?format=parquet")
    assert (answer.status_code, "pullback[parquet]" in answer.json()["detail"]) == (406, True)
