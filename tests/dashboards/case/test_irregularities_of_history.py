"""Spikes, drift and noisier stretches on the pages of a case and of an incident."""

import re

import pytest

pytestmark = pytest.mark.anyio

CASE = "lstm[n=100,act=tanh,f4,cpu]"


def shown(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


async def test_pages_of_a_case_and_of_its_incident_show_a_drift_and_the_chart_marks_it(stored_history, reports):
    """Between commits 20 and 40 the ratio of the fused variant grows by 4 % in all; commit 50 is 30 % slower than its parent."""
    for number in range(1, 63):
        ratio = -0.5 + 0.002 * min(max(number - 20, 0), 20) + (0.26 if number >= 50 else 0.0)
        document = stored_history.commit(number, ratio=ratio)
        if number == 50:
            document = stored_history.paired(document, 0.26, "slower")
        await stored_history.client.post("/api/v1/reports", json=document)
    await stored_history.look()
    address = f"/projects/demo/commits/{reports.sha(45)}/cases/{CASE}"
    (line,) = (await stored_history.client.get(f"{address}.json")).json()["irregularities"]
    assert (line["variant"], line["metric"], line["kind"]) == ("fused", "time", "drift")
    assert line["commit"] in {reports.sha(number) for number in range(18, 25)}
    for twin in ("", ".md"):
        text = shown((await stored_history.client.get(address + twin)).text)
        assert re.search(r"slower little by little over \d+ commits since .*: \+[34]\.\d % in all", text)
        assert "not announced; a drift is announced" in text
    (chart,) = (await stored_history.client.get("/projects/demo/incidents/1.json")).json()["charts"]
    (line,) = chart["irregularities"]
    (note,) = chart["chart"]["notes"]
    assert (line["kind"], note[1]) == ("drift", "↗")
    page = (await stored_history.client.get("/projects/demo/incidents/1")).text
    assert page.count('class="levels-note"') == 2  # in a wide window and in a narrow one
    assert "Signs below the dots" in shown(page)
