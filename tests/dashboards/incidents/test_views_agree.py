"""All views of one history with an incident in each state: none says otherwise than the incidents."""

import random
import re
from math import exp
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.anyio

ATOM = "{http://www.w3.org/2005/Atom}"
COMMITS = 30
LIKELY, NOISE, SUSPECTED = "attention", "conv", "mlp"
"""Workloads of which the detector alone sees a step."""
COUNTED, EXPECTED, MENDED = "dense", "lstm", "gru"
STATES = {
    LIKELY: "likely", NOISE: "refuted", SUSPECTED: "suspected", COUNTED: "confirmed", EXPECTED: "resolved", MENDED: "resolved"
}  # fmt: skip
STEPS = {LIKELY: 25, NOISE: 23, SUSPECTED: 28, COUNTED: 26, EXPECTED: 22, MENDED: 21}
"""The commit of each."""


def commit(stored_history, number):
    """A commit at which six workloads were measured, each in variants of its own, so that no two share an incident."""
    chance = random.Random(number)
    cases = []
    for workload, first in STEPS.items():
        variant, is_there = f"fused-{workload}", number >= first and not (workload == MENDED and number >= 24)
        counts = workload in {COUNTED, EXPECTED, MENDED}
        level = 0.2 if is_there and not counts else 0.0
        seconds = [exp(level - 0.5) * chance.gauss(1, 0.05) for _ in range(3)]
        array_bytes = 4096.0 if is_there and counts else 1024.0
        variants = [
            stored_history.reports.variant("unfused"),
            stored_history.reports.variant(variant, seconds=seconds, array_bytes=array_bytes),
        ]
        case = stored_history.reports.case(workload, variants=variants, log_ratio=level - 0.5 + chance.gauss(0, 0.002))
        for pair in case["paired"]:
            pair["variant"] = variant
        cases.append(case)
    return stored_history.reports.report(number, cases=cases)


@pytest.fixture
async def known(stored_history):
    """The incidents by workload, once people called one expected and one noise."""
    await stored_history.upload(*(commit(stored_history, number) for number in range(1, COMMITS + 1)))
    found = {detail.changes[0].workload: detail for detail in await stored_history.incidents() if detail.changes}
    for workload, verdict in ((EXPECTED, "expected"), (NOISE, "noise")):
        address = f"/api/v1/incidents/{found[workload].incident.id}/verdict"
        answer = await stored_history.client.post(address, json={"verdict": verdict})
        assert answer.status_code == 200, answer.text
    found = {detail.changes[0].workload: detail for detail in await stored_history.incidents() if detail.changes}
    assert {workload: found[workload].incident.state for workload in STATES} == STATES
    return found


TONES = {LIKELY: "likely-worse", NOISE: None, SUSPECTED: "unsure", COUNTED: "worse", EXPECTED: None, MENDED: None}
"""The tone in which a change may be shown."""


async def read(stored_history, address, **parameters):
    response = await stored_history.client.get(address, params=parameters)
    assert response.status_code == 200, response.text
    return response.json()


async def test_no_view_says_otherwise_than_the_incidents(stored_history, known):
    ids = {workload: detail.incident.id for workload, detail in known.items()}
    shas = {workload: detail.commit.sha for workload, detail in known.items()}

    # The overview: the colours of cells, the strip of commits, the list of news.
    for metric, workloads in (("time", (LIKELY, NOISE, SUSPECTED)), ("array_bytes", (COUNTED, EXPECTED, MENDED))):
        heat = (await read(stored_history, "/overview.json", project="demo", metric=metric))["heat"]
        for group in heat["groups"]:
            workload = group["workload"]
            if workload not in workloads:
                continue
            (cell,) = [
                each for row in group["rows"] for each in row["cells"] if each["variant"] != "unfused" and each["move"]
            ] or [None]
            assert (cell and cell["move"]["tone"]) == TONES[workload], workload
            if cell is not None:
                assert f"incident {ids[workload]}" in cell["move"]["words"] or TONES[workload] == "worse"
    news = (await read(stored_history, "/overview.json", project="demo"))["news"]
    said = {(one["variant"].removeprefix("fused-"), one["tone"]) for one in news}
    assert {(workload, tone) for workload, tone in TONES.items() if tone is not None} <= said
    assert not [one for one in said if one[0] == NOISE]
    assert {tone for workload, tone in said if workload in {EXPECTED, MENDED}} <= {"plain"}

    # The commit of each.
    for workload, tone in TONES.items():
        view = await read(stored_history, f"/projects/demo/commits/{shas[workload]}.json")
        assert [(one["id"], one["state"]) for one in view["incidents"]] == [(ids[workload], STATES[workload])]
        told = [one["tone"] for one in view["changes"]["told"]["news"] if one["variant"] == f"fused-{workload}"]
        assert set(told) <= {tone, "plain"} if tone is None else told == [tone], (workload, told)

    # Comparisons of its parent with it, and its case there, name the incident with its state.
    for workload, detail in known.items():
        case = detail.changes[0].case
        for address, parameters in (
            ("/projects/demo/compare.json", {"base": detail.reference.sha, "head": detail.commit.sha}),
            (f"/projects/demo/commits/{detail.commit.sha}/cases/{case}.json", {}),
        ):
            shown = {
                (one["id"], one["state"]) for one in (await read(stored_history, address, **parameters))["incidents"]
            }
            assert (ids[workload], STATES[workload]) in shown, (address, shown)

    # The list, the feed of what was told, the badge, the chart of a workload, explore.
    listed = (await read(stored_history, "/projects/demo/incidents.json", show="all"))["lines"]
    assert {(one["id"], one["state"]) for one in listed} >= {(ids[w], state) for w, state in STATES.items()}
    badge = (await stored_history.client.get("/projects/demo/incidents.badge.svg")).text
    assert "<title>demo: 1 worse, 1 likely worse</title>" in badge
    feed = ET.fromstring((await stored_history.client.get("/projects/demo/feed.atom")).content)  # noqa: S314 - our own
    entries = {entry.findtext(f"{ATOM}id"): entry.findtext(f"{ATOM}summary") for entry in feed.iter(f"{ATOM}entry")}
    told = {workload: entries.get(f"urn:pullback:incident:{ids[workload]}") for workload in STATES}
    assert {workload for workload, summary in told.items() if summary} >= {LIKELY, COUNTED, EXPECTED}
    assert all(summary.startswith(STATES[workload].capitalize()) for workload, summary in told.items() if summary)
    for workload, state in STATES.items():
        chart = (await stored_history.client.get(f"/projects/demo/workloads/{workload}")).text
        assert (f"incident {ids[workload]}: worse, {state}" in chart) == (state != "refuted"), workload
    explored = await read(stored_history, "/projects/demo/explore.json", variant=f"fused-{COUNTED}")
    marks = {one["text"] for chart in explored["charts"] for one in chart["incidents"]}
    assert marks == {f"incident {ids[COUNTED]}: worse, confirmed"}


@pytest.mark.long
async def test_boards_name_the_open_incidents_of_what_they_show_and_no_others(stored_history, known):
    board = (await stored_history.client.post("/api/v1/boards", json={"name": "b", "project": "demo"})).json()["id"]
    ends = {"base": [known[COUNTED].reference.sha], "head": [known[COUNTED].commit.sha]}
    pinned = [
        *({"kind": "workload", "workload": workload} for workload in STATES),
        *({"kind": "explore", "query": {"variant": [f"fused-{workload}"]}} for workload in STATES),
        {"kind": "explore", "query": {"variant": [f"fused-{COUNTED}"], "metric": ["time"]}},
        {"kind": "workload", "workload": COUNTED, "query": {"machine": ["another"]}},
        {"kind": "compare", "query": ends},
        {"kind": "explore", "query": {"q": [" ".join("abcdefghi")]}},  # more words than a page takes
    ]
    for chart in pinned:
        answer = await stored_history.client.post(f"/api/v1/boards/{board}/charts", json={"project": "demo", **chart})
        assert answer.status_code == 201, answer.text
    tiles = (await read(stored_history, f"/boards/{board}.json"))["tiles"]
    shown = [[(one["id"], one["state"]) for one in tile["incidents"]] for tile in tiles]
    are_open = [
        [(known[workload].incident.id, state)] if state in {"likely", "suspected", "confirmed"} else []
        for workload, state in STATES.items()
    ]
    counted = (known[COUNTED].incident.id, "confirmed")
    *of_series, between, of_none = shown
    assert of_series == [*are_open, *are_open, [], []]
    assert (counted in between, of_none) == (True, [])
    page = (await stored_history.client.get(f"/boards/{board}")).text
    assert page.count(f'/incidents/{counted[0]}">incident {counted[0]}</a> worse, confirmed') == 3
    assert f"/incidents/{known[NOISE].incident.id}" not in page


@pytest.mark.long
async def test_the_page_of_what_is_called_noise_says_how_much_more_is_asked(stored_history, known):
    page = (await stored_history.client.get(f"/projects/demo/incidents/{known[NOISE].incident.id}")).text
    assert re.search(r"Until their next level its series are suspected again only of more than 5\d %\.", page)
    page = (await stored_history.client.get(f"/projects/demo/incidents/{known[LIKELY].incident.id}")).text
    assert "Until their next level" not in page
