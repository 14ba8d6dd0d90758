"""What changed at a commit, on its page: what the overview says of it, of old commits too, a machine at a time."""

import math
import re
from urllib.parse import quote

import httpx
import pytest
from tests.dashboards.browser.conftest import SHAS, fresh_database, made_report, serving

pytestmark = pytest.mark.browser


def at(sha, project="pullback"):
    return f"/projects/{project}/commits/{sha}"


def section(page):
    return page.locator("section", has=page.locator("#changes"))


@pytest.mark.parametrize("place", [11, 9, 7])
def test_the_page_of_a_commit_says_of_it_what_the_overview_does(base, place):
    overview = httpx.get(f"{base}/overview.json?project=pullback").json()
    of_commit = [
        (item["mark"], item["variant"], item["text"], item["note"])
        for item in overview["news"]
        if item["sha"] == SHAS[place]
    ]
    assert of_commit
    changes = httpx.get(f"{base}{at(SHAS[place])}.json").json()["changes"]
    assert changes["before"]["sha"] == SHAS[place - 1]
    assert [(i["mark"], i["variant"], i["text"], i["note"]) for i in changes["told"]["news"]] == of_commit


def test_a_change_leads_to_its_case_and_the_whole_to_the_comparison(visit):
    page = visit(at(SHAS[11]), javascript=False)
    told = section(page).locator("li", has_text="arrays 3 → 4 (+1)")
    assert told.get_by_role("link").first.get_attribute("href").startswith(f"{at(SHAS[11])}/cases/")
    section(page).get_by_role("link", name="compare all series").click()
    assert page.locator("h1").inner_text().split() == [SHAS[10][:9], "→", SHAS[11][:9]]


def test_of_commits_of_long_ago_changes_are_told_too(visit):
    assert "0.59× → 0.47×" in section(visit(at(SHAS[4]))).inner_text()


def test_where_nothing_is_told_the_page_says_why(visit):
    assert "First commit measured on lab-7" in section(visit(at(SHAS[0]))).inner_text()
    assert "No change: all counts are equal" in section(visit(at(SHAS[2]))).inner_text()


@pytest.fixture(scope="module")
def other(postgres_server, migrated_template):
    """A service of this file's own: uploads to the one of the session would be the newest everywhere."""
    with (
        serving(fresh_database(postgres_server, migrated_template)) as address,
        httpx.Client(base_url=address) as client,
    ):
        yield client


def send(client, *reports):
    for report in reports:
        client.post("/api/v1/reports", json=report).raise_for_status()


def told_of(client, path):
    """The section as a reader without a browser has it."""
    page = client.get(f"{path}.md").raise_for_status().text
    return " ".join(page.partition("## What changed")[2].partition("\n## ")[0].split())


def test_each_machine_says_what_changed_on_it(other, visit):
    for place, machine in ((0, "one"), (1, "one"), (2, "one"), (0, "two"), (2, "two")):
        report = made_report(place, project="pairs", machine=machine)
        if place == 2 and machine == "two":
            report["cases"][0]["variants"][1]["metrics"]["array_allocs"]["value"] = 8
        send(other, report)
    page = visit(at(SHAS[2], "pairs"), at=str(other.base_url).rstrip("/"))
    machines = page.get_by_role("group", name="machine")
    machines.get_by_role("link", name="one").click()
    page.wait_for_url("**machine=one")
    assert f"Since {SHAS[1][:9]}" in section(page).inner_text()
    assert "→ 8" not in section(page).inner_text()
    machines.get_by_role("link", name="two").click()
    page.wait_for_url("**machine=two")
    assert f"Since {SHAS[0][:9]}" in section(page).inner_text()
    told = section(page).locator("li", has_text="arrays 3 → 8 (+5)")
    assert told.get_by_role("link").first.get_attribute("href").endswith("?machine=two")
    answer = other.get(at(SHAS[1], "pairs"), params={"machine": "two"}, headers={"accept": "text/html"})
    assert answer.status_code == 404
    assert "No machine" in answer.text
    assert f"has measured commit {SHAS[1][:9]}: choose one of one." in answer.text


def test_times_without_a_baseline_say_nothing_and_the_page_says_so(other):
    for place in (0, 1):
        report = made_report(place, project="plain")
        for case in report["cases"]:
            case["variants"] = [variant for variant in case["variants"] if variant["variant"] == "unfused"]
            case["paired"] = []
        send(other, report)
    assert "No change: no difference exceeds the usual scatter between runs. [Compare the two commits]" in told_of(
        other, at(SHAS[1], "plain")
    )


def test_ratios_that_moved_on_a_busy_machine_are_likely_and_say_so(other):
    for place in (3, 4):  # at which the ratios of both tiers move
        report = made_report(place, project="disturbed")
        report["harness"]["quality"] = "busy" if place == 4 else "clean"
        send(other, report)
    told = told_of(other, at(SHAS[4], "disturbed"))
    assert re.search("likely .* (slower|faster): time against unfused", told)
    assert "on a busy machine" in told
    assert SHAS[3][:9] in told


def test_values_beside_a_change_measured_in_the_same_groups_agree_with_it(other):
    """The report before is of a faster session: 25 µs there, 60 µs now, and in turns twice as slow."""
    earlier, later = (made_report(place, project="turns") for place in (0, 1))
    for report, took_s in ((earlier, 25e-6), (later, 60e-6)):
        report["cases"] = report["cases"][:1]
        report["cases"][0]["paired"] = []
        for variant in report["cases"][0]["variants"]:
            variant["metrics"] = {"time": {"unit": "s", "clock": "cpu", "processes": [took_s] * 3}}
    case = later["cases"][0]["case"]
    later["comparisons"] = [
        {
            "case": case, "variant": "fused", "metric": "time", "reference": SHAS[0], "candidate": SHAS[1],
            "log_ratio": math.log(2), "low": 0.68, "high": 0.71, "n": 20, "outcome": "slower", "claim": 0.01, "margin": 0.01,
        }
    ]  # fmt: skip
    send(other, earlier, later)
    view = other.get(f"{at(SHAS[1], 'turns')}.json").raise_for_status().json()
    (row,) = (one for one in view["changes"]["series"] if one["variant"] == "fused")
    assert (row["before"], row["after"], row["amount"]) == ("30.0\u202fµs", "60.0\u202fµs", "+100.0 %")
    compared = other.get(
        "/projects/turns/compare.json", params={"base": SHAS[0], "head": SHAS[1], "show": "all"}
    ).json()
    (row,) = (one for one in compared["rows"] if one["variant"] == "fused")
    assert (row["reference"], row["candidate"], row["change"]) == ("30.0\u202fµs", "60.0\u202fµs", "+100.0 %")
    label = view["changes"]["series"][0]["case"]
    case = other.get(f"{at(SHAS[1], 'turns')}/cases/{quote(label)}.json").raise_for_status().json()
    assert {block["variant"]: block["time_before"] for block in case["variants"]}["fused"] == "30.0\u202fµs"
