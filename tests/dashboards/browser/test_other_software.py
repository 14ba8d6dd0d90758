"""Counts that changed where the software of a machine changed as well are blamed on no commit, on whichever page.

Over the real application; no browser is needed for that.
"""

import csv
import io
import re
import uuid
from datetime import timedelta
from urllib.parse import quote

import httpx
import pytest
from tests.dashboards.browser.conftest import CASES, SHAS, START, fresh_database, made_report, serving
from tests.dashboards.browser.test_formats import text_of

WORKLOAD = "/projects/updated/workloads/dense_bias_act"
CASE = "dense_bias_act[n=100,act=tanh,f4,cpu]"
SOFTWARE = "Counted with different software (numpy 2.3.4, then 2.4.0): count both commits in one installation to know."


@pytest.fixture(scope="module")
def updated(postgres_server, migrated_template):
    """Three commits, each of which makes arrays more; NumPy was updated with the second, on one of two machines."""
    with (
        serving(fresh_database(postgres_server, migrated_template)) as address,
        httpx.Client(base_url=address, timeout=30) as client,
    ):
        for machine in ("kept", "updated"):
            for place in (1, 2, 3):
                report = made_report(place, project="updated", machine=machine)
                if machine == "updated" and place > 1:
                    report["machine"]["facts"] |= {"numpy": "2.4.0", "kernel": "6.12"}
                for case in report["cases"]:
                    for variant in case["variants"]:
                        if variant["metrics"]:
                            variant["metrics"]["array_allocs"]["value"] += place
                client.post("/api/v1/reports", json=report).raise_for_status()
        yield address


def test_the_overview_names_the_software_and_blame_nobody(updated):
    def told(machine):
        view = httpx.get(f"{updated}/overview.json?project=updated&machine={machine}").json()
        return {(item["sha"], item["mark"], item["variant"]): item for item in view["news"] if "arrays" in item["text"]}

    assert {key[:2] for key in told("kept")} == {(SHAS[2], "▲"), (SHAS[3], "▲")}
    found = told("updated")
    assert {key[:2] for key in found} == {(SHAS[2], "?"), (SHAS[3], "▲")}
    item = found[SHAS[2], "?", "unfused, fused, stateful"]
    assert (item["tone"], item["note"]) == ("unsure", SOFTWARE)
    assert item["text"].startswith("counts changed, for example ")
    assert SOFTWARE in text_of(httpx.get(f"{updated}/?project=updated&machine=updated").text)
    assert SOFTWARE not in text_of(httpx.get(f"{updated}/?project=updated&machine=kept").text)


def test_the_workload_page_marks_such_a_change_as_ambiguous(updated):
    asked = f"?case={quote(CASE)}&memory=array_allocs&machine="
    view = httpx.get(f"{updated}{WORKLOAD}.json{asked}updated").json()["view"]
    signs = {event["place"]: (event["sign"], event["sentences"]) for event in view["events"]}
    assert signs[1][0] == "?"
    assert signs[1][1][0] == SOFTWARE
    assert [sentence for sentence in signs[1][1] if sentence == SOFTWARE] == [SOFTWARE]
    assert (signs[2][0], SOFTWARE in signs[2][1]) == ("▲", False)
    marks = {row["place"]: row["marks"]["fused array_allocs"] for row in view["rows"]}
    assert [(marks[place]["since"], marks[place]["since_tone"], marks[place]["since_reason"]) for place in (1, 2)] == [
        ("+1", "unsure", SOFTWARE),
        ("+1", "worse", ""),
    ]
    page = httpx.get(f"{updated}{WORKLOAD}{asked}updated").text
    assert "Δ +1 ?" in text_of(page)
    assert text_of(page).count(SOFTWARE) == 1
    assert SOFTWARE in httpx.get(f"{updated}{WORKLOAD}.figure.json{asked}updated").text
    rows = csv.DictReader(io.StringIO(httpx.get(f"{updated}{WORKLOAD}.csv{asked}updated").text))
    said = {(row["commit"], row["since_reason"]) for row in rows if row["metric"] == "array_allocs"}
    assert said == {(SHAS[1], ""), (SHAS[2], SOFTWARE), (SHAS[3], "")}
    kept = httpx.get(f"{updated}{WORKLOAD}.json{asked}kept").json()["view"]
    assert [event["sign"] for event in kept["events"]] == ["▲", "▲"]


def test_a_thinned_history_says_the_same(updated, monkeypatch):
    for place in range(20):
        report = made_report(1, project="long", cases=CASES[:1], machine="long")
        report["id"] = str(uuid.uuid4())
        report["commit"] |= {"sha": f"{place:040x}", "authored_at": (START + timedelta(days=place)).isoformat()}
        if place >= 10:
            report["machine"]["facts"] |= {"numpy": "2.4.0"}
        for variant in report["cases"][0]["variants"]:
            variant["metrics"]["array_allocs"]["value"] += place // 10 + place // 15
        httpx.post(f"{updated}/api/v1/reports", json=report, timeout=30).raise_for_status()
    monkeypatch.setattr("pullback_service.series.case_history.MOST_MARKS", 16)
    view = httpx.get(f"{updated}/projects/long/workloads/dense_bias_act.json?memory=array_allocs").json()["view"]
    assert view["thinned"]
    assert [(event["place"], event["sign"]) for event in view["events"]] == [(10, "?"), (15, "▲")]
    marks = {row["place"]: row["marks"].get("fused array_allocs") for row in view["rows"]}
    assert [marks[place]["since_reason"] for place in (10, 15)] == [SOFTWARE, ""]
    assert [marks[place]["since_tone"] for place in (10, 15)] == ["unsure", "worse"]


def test_the_page_of_the_case_and_the_comparison_agree(updated):
    address = f"/projects/updated/commits/{SHAS[2]}/cases/{quote(CASE)}"
    for machine, tone, reason in (("updated", "unsure", SOFTWARE), ("kept", "worse", "")):
        view = httpx.get(f"{updated}{address}.json?machine={machine}").json()
        assert view["reasons"] == ([reason] if reason else [])
        assert {said["tone"] for said in view["sentences"] if "arrays +1" in said["text"]} == {tone}
        amounts = {
            amount["tone"] for block in view["variants"] for layer in block["layers"] for amount in layer["amounts"]
        }
        assert amounts - {""} == {tone}
    page = text_of(httpx.get(f"{updated}{address}?machine=updated").text)
    assert SOFTWARE in page
    assert re.search(r"\? \+1", page)
    compared = f"{updated}/projects/updated/compare.json?base={SHAS[1]}&head={SHAS[2]}&metric=array_allocs&show=all"
    rows = httpx.get(compared).json()["rows"]
    assert {(row["machine"], row["outcome"], row["reason"]) for row in rows} == {
        ("updated", "ambiguous", SOFTWARE),
        ("kept", "more", ""),
    }
