"""Answers that are written without models say what their declared models say, no more and no less."""

import pytest
from pydantic import TypeAdapter

from pullback_service.comparisons.schemas import ComparisonPage
from pullback_service.matrix.schemas import WorkloadSummary
from pullback_service.paging import Page
from pullback_service.series.schemas import PointPage, SeriesPoint, SeriesSummary

pytestmark = pytest.mark.anyio


@pytest.fixture
async def measured(client, reports):
    """Four commits, one of them by two reports, one with a case that failed."""
    broken = reports.case("broken", gradient={"ok": False}, variants=[], paired=[])
    for report in (
        *(reports.report(number) for number in (1, 2, 3, 4)),
        reports.report(2),
        reports.report(4, cases=[broken]),
    ):
        assert (await client.post("/api/v1/reports", json=report)).status_code == 201
    return client


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("path", "model", "query"),
    [
        ("series", Page[SeriesSummary], {"limit": 3}),
        ("series/1/points", PointPage, {}),
        ("series/1/points", PointPage, {"limit": 2}),
        ("series/1/points", PointPage, {"raw": "true", "branch": "main"}),
        ("series/1/points", PointPage, {"marks": 16, "last": 2}),
        ("points", Page[SeriesPoint], {"limit": 3}),
        ("points", Page[SeriesPoint], {"raw": "true"}),
        ("matrix", Page[WorkloadSummary], {}),
        ("matrix", Page[WorkloadSummary], {"limit": 1}),
        ("comparisons", ComparisonPage, {"base": f"{1:040x}", "head": f"{2:040x}"}),
        ("comparisons", ComparisonPage, {"base": f"{4:040x}", "head": f"{3:040x}", "limit": 1}),
    ],
)
async def test_an_answer_is_what_its_schema_declares(measured, path, model, query):
    answer = await measured.get(f"/api/v1/{path}", params={"project": "demo", **query})
    assert answer.status_code == 200, answer.text
    declared = TypeAdapter(model)
    assert declared.dump_python(declared.validate_json(answer.content), mode="json") == answer.json()
    assert answer.json()["items"]
