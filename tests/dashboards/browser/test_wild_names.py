"""Names that try to break out of a page or burst it: they are text, whole where a reader looks for them, and nothing moves.

The names are those of the large made project: HTML, quotes, emoji, right-to-left text with an override, slashes that look
like an address, and two hundred characters without a blank, of workloads, machines and commits alike.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import httpx
import pytest

from pullback_service.visible_text import visible

large = pytest.importorskip("benchmarks.large_project.shape", reason="the benchmarks are not installed")

pytestmark = pytest.mark.browser

SHAPE = large.Shape(workloads=9, machines=3, commits=12)


@pytest.fixture
def wild_base(database_url, made):
    """Address of an application with a small large project."""
    from benchmarks.large_project.filling import fill
    from tests.dashboards.browser.conftest import serving

    from pullback_service.database_rebuild import project_all

    fill(database_url, SHAPE)
    with ThreadPoolExecutor() as beside:  # Playwright has a loop in this thread
        beside.submit(asyncio.run, project_all(database_url)).result()
    with serving(database_url) as address:
        names = [
            name.replace("\N{RIGHT-TO-LEFT OVERRIDE}", "") for name in large.WILD_WORKLOADS
        ]  # which uploads may not have
        cases = [(name, {"n": 1}, "f8", 1e-3, 800) for name in names]
        report = made.made_report(10, project="wild", cases=cases, machine=large.WILD_MACHINES[1])
        answer = httpx.post(f"{address}/api/v1/reports", json=report, timeout=60)
        assert answer.status_code == 201, answer.text
        yield address


@pytest.mark.long
def test_wild_names_are_text_and_fit_every_page(visit, wild_base):
    page = visit("/?project=large&open=" + quote(large.WILD_WORKLOADS[0]), at=wild_base)
    ran = []
    page.on("dialog", lambda dialog: (ran.append(dialog.message), dialog.dismiss()))
    overview = httpx.get(f"{wild_base}/overview.json?project=large").json()
    names = [group["workload"] for group in overview["heat"]["groups"]]
    assert set(large.WILD_WORKLOADS) <= set(names)
    shown = page.locator("table.heat th a.name").all()
    assert set(map(visible, large.WILD_WORKLOADS)) <= {link.inner_text() for link in shown} & {
        link.get_attribute("title") for link in shown
    }
    assert page.locator("option", has_text=large.WILD_MACHINES[0]).count() == 1

    newest, before = large.sha_of(SHAPE.commits - 1), large.sha_of(SHAPE.commits - 2)
    machine = quote(large.WILD_MACHINES[1], safe="")
    hrefs = [group["href"] for group in overview["heat"]["groups"] if group["workload"] in large.WILD_WORKLOADS]
    told = httpx.get(f"{wild_base}/overview.json?project=wild").json()
    cases = [
        httpx.get(f"{wild_base}{group['href']}.json").json()["view"]["rows"][0]["href"]
        for group in told["heat"]["groups"]
    ]
    assert len(cases) == len(large.WILD_WORKLOADS)
    cases += [row["href"] for row in httpx.get(f"{wild_base}{hrefs[0]}.json").json()["view"]["rows"][:2]]
    places = [
        "/?project=large",
        f"/?project=large&machine={machine}&metric=array_bytes&sort=worst",
        "/?project=large&changed=1&q=" + quote("<script>alert(2)</script>"),
        *hrefs,
        *(f"{href}?machine={machine}&y=absolute&scale=log&x=date" for href in hrefs[:2]),
        *cases,
        f"/projects/large/commits/{newest}",
        f"/projects/large/commits/{before}",
        f"/projects/large/compare?base={before}&head={newest}",
        "/projects/large/explore?workload=" + quote(large.WILD_WORKLOADS[1]) + "&metric=time",
        "/jobs",
        f"/projects/wild/commits/{told['commit']['sha']}",
        "/help",
    ]
    for place in places:
        assert page.goto(wild_base + place).status == 200, place
        if page.locator("[data-figure]").count():
            page.wait_for_selector("[data-drawn=yes]", timeout=60_000)
        assert page.locator("main b[onmouseover], main i:text-is('sons'), main script:not([type])").count() == 0, place
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert overflow <= 0, (place, width, overflow)
    assert ran == []


def test_feeds_charts_and_tables_of_wild_names_are_well_formed(wild_base):
    from xml.etree import ElementTree as ET

    overview = httpx.get(f"{wild_base}/overview.json?project=large").json()
    for group in overview["heat"]["groups"]:
        for form in (".svg", ".badge.svg"):
            assert ET.fromstring(httpx.get(f"{wild_base}{group['href']}{form}").raise_for_status().text) is not None  # noqa: S314 - ours
    assert ET.fromstring(httpx.get(f"{wild_base}/projects/large/feed.atom").raise_for_status().content) is not None  # noqa: S314 - ours
    lines = httpx.get(f"{wild_base}/overview.csv?project=large").raise_for_status().text.splitlines()
    assert len(lines) > len(large.WILD_WORKLOADS)
