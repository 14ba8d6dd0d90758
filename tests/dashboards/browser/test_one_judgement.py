"""Workload, case, commit and feed say of a step what the comparison of both commits says, over the real application.

Mixed reports of two branches: counted alike or not, by other methods and software, disturbed, in part, failed, twice.
"""

import random
import uuid
from urllib.parse import quote

import httpx
import pytest
from tests.dashboards.browser.conftest import CASES, SHAS, fresh_database, made_report, serving

CASE = "dense_bias_act[n=100,act=tanh,f4,cpu]"
PARENTS = {0: None, 1: 0, 2: 0, 3: 1, 4: 2, 5: 3, 6: 5, 7: 4}
"""Two branches part at the first commit, and their commits lie between each other."""
OF_OUTCOMES = {"more": "worse", "less": "better", "ambiguous": "unsure", "not_comparable": "unsure"}


@pytest.fixture(scope="module")
def client(postgres_server, migrated_template):
    with (
        serving(fresh_database(postgres_server, migrated_template)) as address,
        httpx.Client(base_url=address, timeout=30) as client,
    ):
        yield client


def report_at(place, project, chance=None, **counts):
    """A report in which `fused` counts so; with `chance`, anything may be odd about it."""
    report = made_report(place, project=project, cases=CASES[:1])
    report["id"] = str(uuid.uuid4())
    parent = PARENTS[place]
    report["commit"]["parents"] = [] if parent is None else [SHAS[parent]]
    report["harness"]["quality"] = "clean"
    (case,) = report["cases"]
    case["variants"] = [variant for variant in case["variants"] if variant["variant"] in {"unfused", "fused"}]
    case["paired"] = [pair for pair in case["paired"] if pair["variant"] == "fused"]
    for variant in case["variants"]:
        del variant["metrics"]["array_allocs"]
        counted = variant["metrics"]["array_bytes"]
        counted["value"] = counts.get(variant["variant"], 1000)
        if chance is not None:
            counted["value"] = chance.choice([600, 600, 700])
            counted["method"] = chance.choice(["nep49", "nep49", "nep49", "tracemalloc"])
    if chance is not None:
        report["machine"]["facts"]["numpy"] = chance.choice(["2.3.4", "2.3.4", "2.4.0"])
        report["harness"]["quality"] = chance.choice(["clean", "clean", "contaminated"])
        odd = chance.random()
        if odd < 0.15:
            case["variants"].pop()
            case["paired"] = []
        elif odd < 0.3:
            case |= {"error": {"kind": "crash", "message": "broke"}, "variants": [], "paired": []}
    return report


def send(client, *reports):
    for report in reports:
        client.post("/api/v1/reports", json=report).raise_for_status()


def ancestors(place):
    while (place := PARENTS[place]) is not None:
        yield place


def expected(client, project, place):
    """By variant, what compare says of the bytes of a commit against the nearest ancestor that counted them, where they differ."""
    found = {}
    for before in ancestors(place):
        answer = client.get(
            "/api/v1/comparisons",
            params={"project": project, "base": SHAS[before], "head": SHAS[place], "metric": "array_bytes"},
        )
        for row in answer.raise_for_status().json()["items"]:
            if row["reference"] is not None and row["candidate"] is not None:
                differ = row["reference"]["value"] != row["candidate"]["value"]
                found.setdefault(row["variant"], OF_OUTCOMES[row["outcome"]] if differ else None)
    return {variant: tone for variant, tone in found.items() if tone is not None}


def on_the_workload(client, project):
    """Tones by commit and variant: of the column, and of the lane."""
    path = f"/projects/{project}/workloads/dense_bias_act.json"
    view = client.get(path, params={"memory": "array_bytes"}).raise_for_status().json()["view"]
    plot = next(plot for plot in view["plots"] if plot["metric"]["name"] == "array_bytes")
    marks = {
        (mark["sha"], track["variant"]): mark["since_tone"]
        for track in plot["tracks"]
        for mark in track["marks"]
        if mark["since_tone"]
    }
    shas = [commit["sha"] for commit in view["commits"]]
    lane = {
        (shas[event["place"]], sentence.partition(":")[0]): tone
        for event in view["events"]
        if event["lane"] == "counts"
        for sentence, tone in zip(event["sentences"], event["tones"], strict=True)
        if ": array bytes" in sentence
    }
    return marks, lane


def on_the_case(client, project, place):
    view = client.get(f"/projects/{project}/commits/{SHAS[place]}/cases/{quote(CASE)}.json").raise_for_status().json()
    return {
        block["variant"]: amount["tone"]
        for block in view["variants"]
        for layer in block["layers"]
        for amount in layer["amounts"]
        if amount["tone"]
    }


def at_the_commit(client, project, place):
    view = client.get(f"/projects/{project}/commits/{SHAS[place]}.json").raise_for_status().json()
    return {
        variant: item["tone"]
        for item in (view["changes"] or {"told": {"news": []}})["told"]["news"]
        if "array bytes" in item["text"]
        for variant in item["variant"].split(", ")
    }


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_reports_every_page_says_of_a_step_what_compare_says(client, seed):
    chance, project = random.Random(seed), f"mixed-{seed}"
    places = [*PARENTS, *chance.choices(list(PARENTS), k=5)]
    send(client, *(report_at(place, project, chance) for place in chance.sample(places, len(places))))
    marks, lane = on_the_workload(client, project)
    assert marks
    told = {}
    for place in PARENTS:
        judged = expected(client, project, place)
        told |= {(SHAS[place], variant): tone for variant, tone in judged.items()}
        assert at_the_commit(client, project, place) == judged
        # The page shows the variants of one report of the commit.
        assert on_the_case(client, project, place).items() <= judged.items()
    assert marks == told
    assert lane == told


def test_what_another_branch_did_is_not_the_doing_of_the_commit_after_it(client):
    """A pull request counts ten times as much, measured between two commits of the main branch that count alike."""
    send(client, *(report_at(place, "parted", fused=6000 if place == 2 else 600) for place in (0, 1, 2, 3)))
    overview = client.get("/overview.json", params={"project": "parted"}).json()
    assert {item["sha"] for item in overview["news"]} == {SHAS[2]}
    _, lane = on_the_workload(client, "parted")
    assert lane == {(SHAS[2], "fused"): "worse"}
    assert on_the_case(client, "parted", 3) == at_the_commit(client, "parted", 3) == {}
    assert client.get(f"/projects/parted/commits/{SHAS[3]}.json").json()["changes"]["before"]["sha"] == SHAS[1]


def test_a_wrong_gradient_stands_before_what_another_report_measured(client):
    wrong = report_at(1, "wrong")
    wrong["cases"][0]["gradient"] = {"ok": False, "max_rel_error": 3.0, "oracle": "closed form"}
    send(client, report_at(0, "wrong"), report_at(1, "wrong", fused=2000), wrong, report_at(1, "wrong", fused=3000))
    overview = client.get("/overview.json", params={"project": "wrong"}).json()
    cells = {
        cell["variant"]: cell for group in overview["heat"]["groups"] for row in group["rows"] for cell in row["cells"]
    }
    assert cells["fused"]["outcome"] == "failed"
    (item,) = overview["news"]
    assert (item["mark"], item["variant"]) == ("✕", "unfused, fused")
    view = client.get(f"/projects/wrong/commits/{SHAS[1]}/cases/{quote(CASE)}.json").json()
    assert view["gradient"].startswith("wrong")


def test_a_case_that_failed_once_more_speaks_by_the_report_that_measured_it(client):
    failed = report_at(1, "again")
    failed["cases"][0] |= {"error": {"kind": "crash", "message": "broke"}, "variants": [], "paired": []}
    send(client, report_at(0, "again"), report_at(1, "again", fused=1500), failed)
    view = client.get(f"/projects/again/commits/{SHAS[1]}/cases/{quote(CASE)}.json").json()
    assert view["failure"] is None
    assert on_the_case(client, "again", 1) == {"fused": "worse"}
