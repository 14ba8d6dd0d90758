"""Cases that differ in whether a parameter is text are two on every page, and each has pages. No browser is needed."""

import httpx
import pytest
from tests.dashboards.browser.conftest import made_report, serving

from pullback_dashboards import links

ALIKE = ({"n": 1}, {"n": "1"}, {"a": "1", "b": "2"}, {"a": "1,b=2"}, {"flag": True}, {"flag": "true"})
LABELS = ("n=1", 'n="1"', 'a="1",b="2"', 'a="1,b=2"', "flag=true", 'flag="true"')
SIZES = dict(zip((f"w[{label},f8,cpu]" for label in LABELS), range(100, 700, 100), strict=True))


@pytest.fixture(scope="module")
def alike(module_database_url):
    """The address of the service, and the last of two reports."""
    cases = [("w", params, "f8", 1e-3, size) for params, size in zip(ALIKE, SIZES.values(), strict=True)]
    with serving(module_database_url) as base:
        for place in (0, 1):
            report = made_report(place, cases=cases)
            httpx.post(f"{base}/api/v1/reports", json=report).raise_for_status()
        yield base, report


def test_each_has_a_row_of_its_own_and_a_history(alike):
    base, _ = alike
    (group,) = httpx.get(f"{base}/overview.json?project=pullback").json()["heat"]["groups"]
    assert {row["case"] for row in group["rows"]} == set(SIZES)
    for row in group["rows"]:
        address = f"{base}{row['href'].replace('?', '.json?', 1)}&memory=array_bytes"
        plots = httpx.get(address).json()["view"]["plots"]
        (arrays,) = (plot for plot in plots if plot["metric"]["name"] == "array_bytes")
        (unfused,) = (track for track in arrays["tracks"] if track["variant"] == "unfused")
        assert [mark["value"] for mark in unfused["marks"]] == [SIZES[row["case"]]] * 2


def test_each_has_a_page_at_a_commit_which_the_page_of_the_report_links_to(alike):
    base, report = alike
    told = httpx.get(f"{base}/reports/{report['id']}.json").json()["cases"]
    assert [one["case"] for one in told] == list(SIZES)
    for label, size in SIZES.items():
        page = httpx.get(base + links.case("pullback", report["commit"]["sha"], label) + ".json")
        assert page.status_code == 200, page.text
        (unfused,) = (one for one in page.json()["variants"] if one["variant"] == "unfused")
        assert f"{size} B" in str(unfused["layers"])
