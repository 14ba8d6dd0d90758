"""What is left of a report whose file was dropped."""

from uuid import UUID

import pytest

from pullback_service.reports.queries import report_by_id
from pullback_service.reports.remains import remains_of

pytestmark = pytest.mark.anyio


async def test_rows_still_say_what_was_measured(client, session, reports):
    failed = reports.case("broken", error={"kind": "gradient", "message": "wrong"}, variants=[], paired=[])
    document = reports.report(2, cases=[reports.case(), failed])
    document["comparisons"] = [
        {
            "case": document["cases"][0]["case"],
            "variant": "fused",
            "metric": "time",
            "reference": reports.sha(1),
            "candidate": reports.sha(2),
            "log_ratio": 0.1,
            "low": 0.09,
            "high": 0.11,
            "n": 20,
            "outcome": "slower",
        }
    ]
    receipt = (await client.post("/api/v1/reports", json=document)).json()
    left = await remains_of(session, (await report_by_id(session, UUID(receipt["id"]))).report)
    assert left["commit"]["title"] == "Change 2"
    assert left["machine"]["name"] == "box"
    dense, broken = left["cases"]
    assert broken["error"] == {"kind": "gradient", "message": "wrong"}
    assert [variant["variant"] for variant in dense["variants"]] == ["unfused", "fused"]
    fused = dense["variants"][1]
    assert fused["metrics"]["array_bytes"]["value"] == 1024.0
    assert fused["metrics"]["time"]["processes"] == [0.6, 0.7, 0.5]
    assert {(pair["metric"], pair["outcome"]) for pair in dense["paired"]} == {
        ("time", "faster"),
        ("array_bytes", "less"),
    }
    assert [(one["reference"], one["outcome"]) for one in left["comparisons"]] == [(reports.sha(1), "slower")]
