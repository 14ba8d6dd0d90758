"""Metrics of which more is better: what a page calls better, and its marks, follow their direction, whichever page it is.

Over the real application; no browser is needed for that.
"""

import csv
import io
import math
import uuid
from datetime import timedelta
from urllib.parse import quote

import httpx
import pytest
from tests.dashboards.browser.conftest import SHAS, START, fresh_database, serving
from tests.dashboards.browser.test_formats import text_of

CASE = "lookup[n=1,f8,cpu]"
WORKLOAD = "/projects/cache/workloads/lookup"
HITS, RATES = (5, 5, 9, 2), (1.0, 1.0, 2.0, 0.5)


def report(place):
    """One commit: a cache whose fused tier hits more, then less, where unfused hits seven times; rates likewise."""

    def variant(name, hits, rate):
        metrics = {
            "time": {"unit": "s", "processes": [1.0] * 3},
            "hits": {"unit": "1", "value": hits, "direction": "bigger", "kind": "exact"},
            "rate": {"unit": "op/s", "processes": [0.9 * rate, rate, 3 * rate], "direction": "bigger"},
        }
        return {"variant": name, "kind": "tier", "metrics": metrics}

    log_ratio = math.log(RATES[place])
    outcome = "faster" if log_ratio > 0 else "slower" if log_ratio < 0 else "same"
    paired = {
        "variant": "fused", "baseline": "unfused", "metric": "rate", "n": 20, "outcome": outcome,
        "log_ratio": log_ratio, "low": log_ratio - 0.001, "high": log_ratio + 0.001,
    }  # fmt: skip
    return {
        "format": "pullback-report",
        "version": 1,
        "id": str(uuid.uuid4()),
        "started_at": (START + timedelta(days=place)).isoformat(),
        "project": "cache",
        "commit": {
            "sha": SHAS[place],
            "parents": [SHAS[place - 1]] if place else [],
            "branch": "main",
            "authored_at": (START + timedelta(days=place)).isoformat(),
            "title": f"change {place}",
        },
        "machine": {"fingerprint": "cache", "name": "lab-7", "facts": {"cpu": "x"}},
        "harness": {"version": "1", "suite": "quick", "quality": "clean"},
        "cases": [
            {
                "case": {"workload": "lookup", "params": {"n": 1}, "dtype": "f8", "device": "cpu"},
                "variants": [variant("unfused", 7, 1e6), variant("fused", HITS[place], 1e6 * RATES[place])],
                "paired": [paired],
            }
        ],
    }


@pytest.fixture(scope="module")
def cache(postgres_server, migrated_template):
    with (
        serving(fresh_database(postgres_server, migrated_template)) as address,
        httpx.Client(base_url=address, timeout=30) as client,
    ):
        for place in range(len(HITS)):
            client.post("/api/v1/reports", json=report(place)).raise_for_status()
        yield client


def test_what_a_comparison_found_follows_the_direction_too(cache):
    stated = report(3) | {"project": "stated"}
    stated["comparisons"] = [
        {
            "case": stated["cases"][0]["case"], "variant": "fused", "metric": "hits", "reference": SHAS[2],
            "candidate": SHAS[3], "log_ratio": math.log(2 / 9), "outcome": "less",
        }
    ]  # fmt: skip
    for one in (report(2) | {"project": "stated"}, stated):
        cache.post("/api/v1/reports", json=one).raise_for_status()
    said = cache.get("/overview.json", params={"project": "stated"}).json()["news"]
    assert [(item["tone"], item["mark"], item["text"]) for item in said] == [
        ("worse", "▲", "hits 9 → 2 (−7)"),
        ("likely-worse", "△", "likely 75 % less rate: rate against unfused 2.00× → 0.50×"),
    ]
    view = cache.get(f"/projects/stated/commits/{SHAS[3]}/cases/{quote(CASE)}.json").json()
    assert {said["tone"] for said in view["sentences"]} == {"worse"}
    events = cache.get("/projects/stated/workloads/lookup.json").json()["view"]["events"]
    assert {event["tone"] for event in events} == {"worse"}


def test_fewer_hits_are_worse_in_the_news(cache):
    news = cache.get("/overview.json", params={"project": "cache"}).json()["news"]
    assert [(item["tone"], item["mark"], item["text"]) for item in news] == [
        ("worse", "▲", "hits 9 → 2 (−7)"),
        ("likely-worse", "△", "likely 75 % less rate: rate against unfused 2.00× → 0.50×"),
        ("likely-better", "▽", "likely 2.0× as much rate: rate against unfused 1.00× → 2.00×"),
        ("better", "▼", "hits 5 → 9 (+4)"),
    ]


@pytest.mark.parametrize("metric", ["hits", "rate"])
def test_a_cell_has_the_mark_of_its_tone(cache, metric):
    heat = cache.get("/overview.json", params={"project": "cache", "metric": metric}).json()["heat"]
    (cell,) = [cell for cell in heat["groups"][0]["rows"][0]["cells"] if cell["variant"] == "fused"]
    assert (cell["tone"], cell["mark"]) == ("worse", "▲")


@pytest.mark.parametrize("metric", ["hits", "rate"])
def test_marks_and_what_changed_since_follow_the_direction_on_the_page_of_a_workload(cache, metric):
    view = cache.get(f"{WORKLOAD}.json", params={"memory": metric}).json()["view"]
    marks = [row["marks"][f"fused {metric}"] for row in view["rows"]]
    since = {"rate": ("likely-worse", "likely-better"), "hits": ("worse", "better")}[metric]  # measured, and counted
    assert [(mark["tone"], mark["sign"], mark["since_tone"]) for mark in marks[:2]] == [
        ("worse", "▲", since[0]),
        ("better", "▼", since[1]),
    ]


def test_explore_marks_a_series_by_its_tone(cache):
    rows = cache.get("/projects/cache/explore.json").json()["rows"]
    (rate,) = [row for row in rows if (row["variant"], row["metric"]) == ("fused", "rate")]
    assert (rate["tone"], rate["mark"]) == ("worse", "▲")


def test_a_comparison_marks_a_row_by_its_tone(cache):
    asked = {"base": SHAS[2], "head": SHAS[3], "metric": "hits", "variant": "fused"}
    (row,) = cache.get("/projects/cache/compare.json", params=asked).json()["rows"]
    assert (row["tone"], row["mark"]) == ("worse", "▲")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/?project=cache&metric=hits", "Above 1× is better: more than unfused at the same commit."),
        (f"{WORKLOAD}?memory=hits", "Above 1× is better for hits, below 1× for other metrics"),
        ("/projects/cache/explore?metric=rate", "Above 1× is better: more than the baseline"),
    ],
)
def test_the_foot_of_a_page_says_on_which_side_of_one_its_metric_is_better(cache, address, words):
    page = text_of(cache.get(address).text)
    assert words in page
    assert "Below 1× is better" not in page


def test_the_page_of_a_case_blames_fewer_hits(cache):
    view = cache.get(f"/projects/cache/commits/{SHAS[3]}/cases/{quote(CASE)}.json").json()
    assert [(said["tone"], said["mark"], said["text"]) for said in view["sentences"]] == [
        ("worse", "▲", "hits −7, now 2; rate −75.0 %, now 500\u202fkop/s")
    ]


def test_the_page_of_a_case_shows_what_is_neither_time_nor_memory(cache):
    shown = cache.get(f"/projects/cache/commits/{SHAS[2]}/cases/{quote(CASE)}.md").text
    assert "| fused | rate | 2.00\u202fMop/s · ▽ +100.0" in shown
    assert "| hits | 9 · ▼ +4 |" in shown


def test_a_report_has_the_median_of_the_processes_of_every_metric(cache):
    page = cache.get(f"/projects/cache/commits/{SHAS[2]}.json").json()["reports"][0]["href"]
    rows = list(csv.DictReader(io.StringIO(cache.get(f"{page}.csv").text)))
    assert {row["variant"]: row["value"] for row in rows if row["metric"] == "rate"} == {
        "unfused": "1000000.0",
        "fused": "2000000.0",
    }
    (rate,) = [row for row in rows if (row["variant"], row["metric"]) == ("fused", "rate")]
    assert (rate["factor"], rate["groups"], rate["outcome"]) == ("2.0", "20", "faster")
    assert "2.00\u202fMop/s" in cache.get(f"{page}.md").text
