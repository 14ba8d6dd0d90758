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

pytestmark = [pytest.mark.system, pytest.mark.browser]

PICTURES = os.environ.get("PULLBACK_SCREENSHOTS")
CHECKOUT = Path(__file__).parents[2]


def test_a_measured_ratio_is_seen_on_the_overview_and_on_the_workload_page(product, connect, browser):
    if PICTURES:
        product.repository = CHECKOUT
        product.up("--suite", "quick")
    else:
        product.up()
    api = connect(product.status()["url"])
    for job in api.get("/api/v1/jobs")["items"]:
        api.wait_for_job(job["id"], "done", timeout_s=600 if PICTURES else 90)

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
        page.goto(f"{product.status()['url']}/projects/{quote(overview['project'], safe='')}/workloads/dense_bias_act")
        page.wait_for_selector("[data-drawn=yes]", timeout=30_000)
        keep(page, "workload")
    context.close()
    api.http.close()
    assert complaints == []


def keep(page, name):
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")
