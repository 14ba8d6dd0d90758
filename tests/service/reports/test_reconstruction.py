"""What is left of a report whose file was dropped."""

from uuid import UUID

import pytest

from pullback_service.reports.queries import report_by_id
from pullback_service.reports.reconstruction import remains_of

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


async def test_what_is_left_of_a_count_tells_how_its_calls_differ(client, session, reports):
    document = reports.report(2)
    document["cases"][0]["variants"][0]["metrics"]["array_bytes"] |= {"differs": True, "range": [4000, 5000]}
    receipt = (await client.post("/api/v1/reports", json=document)).json()
    left = await remains_of(session, (await report_by_id(session, UUID(receipt["id"]))).report)
    unfused, fused = (each["metrics"]["array_bytes"] for each in left["cases"][0]["variants"])
    assert (unfused["differs"], unfused["range"]) == (True, [4000, 5000])
    assert "range" not in fused


async def test_what_is_left_is_judged_as_the_whole_was(client, session, reports):
    """By what a metric is, and by what a comparison could have claimed."""
    case = reports.case()
    for name, kind in (("hits", "exact"), ("peak_bytes", "noisy"), ("python_allocs", None)):
        for variant in case["variants"]:
            variant["metrics"][name] = {"unit": "1", "value": 3, "kind": kind}
    said = {"log_ratio": 0.1, "low": 0.09, "high": 0.11, "n": 20, "outcome": "slower"}
    said |= {"claim": 0.02, "margin": 0.03, "margin_is_provisional": True}
    compared = {"case": case["case"], "variant": "fused", "metric": "time"}
    compared |= {"reference": reports.sha(1), "candidate": reports.sha(2), **said}
    document = reports.report(2, cases=[case], comparisons=[compared])
    receipt = (await client.post("/api/v1/reports", json=document)).json()
    left = await remains_of(session, (await report_by_id(session, UUID(receipt["id"]))).report)
    metrics = left["cases"][0]["variants"][1]["metrics"]
    assert {name: metrics[name]["kind"] for name in ("hits", "peak_bytes", "python_allocs", "array_bytes", "time")} == {
        "hits": "exact", "peak_bytes": "noisy", "python_allocs": None, "array_bytes": "exact", "time": "noisy",
    }  # fmt: skip
    assert {name: left["comparisons"][0][name] for name in said} == said
