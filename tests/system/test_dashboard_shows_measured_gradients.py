"""From `pullback up` to a measured number in a browser: nothing in between is replaced.

With PULLBACK_SCREENSHOTS=FOLDER the whole quick suite is measured for this checkout and its history instead of one
case, which takes minutes, and the pictures of the README are saved there.
"""

import math
import os
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.system.products import until

pytestmark = [pytest.mark.system, pytest.mark.browser]

PICTURES = os.environ.get("PULLBACK_SCREENSHOTS")
CHECKOUT = Path(__file__).parents[2]


def _measured(product, connect, *, timeout_s=90):
    """The API and the jobs of an `up` once all of them are done."""
    api = connect(product.status()["url"])
    jobs = until(
        lambda: len(found := api.get("/api/v1/jobs")["items"]) > 1 and found, what="jobs, once the start is over"
    )
    for job in jobs:
        api.wait_for_job(job["id"], "done", "failed", "lost", timeout_s=timeout_s)
    return api, [api.job(job["id"]) for job in jobs]


@pytest.mark.long
def test_from_nothing_to_measured_ratios_in_a_browser_and_back_to_nothing(product, connect, git, browser):
    if PICTURES:
        product.repository = CHECKOUT
        product.up("--suite", "quick")
        see_measured_ratios(_measured(product, connect, timeout_s=600)[0], browser)
        return
    said = product.up().stdout
    status = product.status()
    assert status["running"]
    assert status["ready"]
    assert sorted(status["processes"]) == ["agent", "api", "up", "worker"]
    assert status["postgres"]["pid"] in {process.pid for process in product.processes()}
    assert status["url"] in said

    api, jobs = _measured(product, connect)
    head, earlier = git(product.repository, "rev-parse", "HEAD"), git(product.repository, "rev-parse", "HEAD~1")
    assert {job["commit"]["sha"]: job["state"] for job in jobs} == {head: "done", earlier: "done"}
    # The head changed words alone: the code that it has was measured first.
    assert {job["commit"]["sha"] for job in jobs if job["priority"] == 100} == {earlier}

    for job in jobs:
        document = api.get(f"/api/v1/reports/{job['report_id']}")["document"]
        assert document["commit"]["sha"] == job["commit"]["sha"]
        assert document["harness"]["job"] == {"id": str(job["id"]), "attempt": 1}
        (case,) = document["cases"]
        assert case["gradient"]["ok"]
        times = [pair for pair in case["paired"] if pair["metric"] == "time"]
        assert times
        assert all(0.001 < math.exp(pair["log_ratio"]) < 20 for pair in times)
        assert "poly9_broadcast" in api.http.get(f"/api/v1/jobs/{job['id']}/log").text
    see_measured_ratios(api, browser)

    log = product.data / "logs" / "up.log"
    assert f"{head[:10]} is measured:" in log.read_text()
    assert re.search(r"poly9_broadcast\[.*\] +fused +([\d.]+x (faster|slower)|same|ambiguous)", log.read_text())

    assert product.down().returncode == 0
    assert product.processes() == []
    assert product.run("status", "--data", str(product.data)).returncode == 1

    product.up()
    _, again = _measured(product, connect)
    assert {job["id"] for job in again} == {job["id"] for job in jobs}, "what is measured is not measured again"


def see_measured_ratios(api, browser):
    """Go from the overview to the page of a workload, and compare what both show with what was measured."""
    overview = api.get("/overview.json")
    cells = [
        cell
        for group in overview["heat"]["groups"]
        if group["workload"] == "poly9_broadcast"
        for row in group["rows"]
        for cell in row["cells"]
        if cell["log_ratio"] is not None
    ]
    assert cells
    assert all(0.001 < math.exp(cell["log_ratio"]) < 20 for cell in cells)

    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(str(api.http.base_url))
    heat = page.locator("table.heat tr", has_text="poly9_broadcast").first.inner_text()
    assert cells[0]["value"] in heat
    keep(page, "overview")

    page.locator("table.heat tr", has_text="poly9_broadcast").first.locator("th a").click()
    page.wait_for_selector("[data-drawn=yes]", timeout=30_000)
    drawn = page.evaluate(
        "document.getElementById('figure').data.filter(t => t.mode.includes('markers')).map(t => [t.name, t.y.at(-1)])"
    )
    assert any(math.isclose(height, math.exp(cells[0]["log_ratio"]), rel_tol=1e-4) for _, height in drawn if height)
    assert re.search(r"\d×", page.locator("table").inner_text())
    if PICTURES:
        page.goto(f"{api.http.base_url}/projects/{quote(overview['project'], safe='')}/workloads/dense_bias_act")
        page.wait_for_selector("[data-drawn=yes]", timeout=30_000)
        keep(page, "workload")
    context.close()
    assert complaints == []


def keep(page, name):
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")
