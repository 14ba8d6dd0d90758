"""What a machine tells of itself, as its page and the page of a report show it: in groups and units, however it is named."""

from uuid import uuid4

import httpx
import pytest

pytestmark = pytest.mark.browser

NOBREAK = "\N{NARROW NO-BREAK SPACE}"
LONG = "x" * 200
FACTS = {
    "cpu": "EPYC 7B13",
    "memory_gib": 31,
    "free_disk_bytes": 69723832320,
    "clock_mhz": 3400,
    "smt": True,
    "caches": {"l2_kib": 512},
    LONG: "a value beside a long name",
    '<b onmouseover="alert(1)">bold</b>': LONG,
}


@pytest.fixture
def machine(empty_base, made):
    """The address of a machine that told more than usual, and changed since."""
    with httpx.Client(base_url=empty_base, timeout=30) as client:
        for place, facts in enumerate((FACTS, FACTS | {"smt": False, "caches": {"l2_kib": 1024}})):
            report = made.made_report(place) | {"id": str(uuid4())}
            report["machine"]["facts"] = facts
            report["started_at"] = f"2026-03-0{place + 1}T12:00:00Z"
            client.post("/api/v1/reports", json=report).raise_for_status()
        yield f"/machines/{client.get('/api/v1/machines').json()['items'][0]['id']}"


def test_facts_read_and_stay_in_their_place(visit, empty_base, machine):
    told = {fact["name"]: fact["value"] for fact in httpx.get(f"{empty_base}{machine}.json").json()["facts"]}
    assert (told["free disk bytes"], told["smt"], told["caches l2 kib"]) == ("69723832320", "False", "1024")
    for width, theme in ((1440, "light"), (390, "dark")):
        page = visit(machine, width=width, theme=theme, at=empty_base)
        facts = page.locator("section[aria-labelledby=facts]")
        shown = dict(zip(facts.locator("dt").all_inner_texts(), facts.locator("dd").all_inner_texts(), strict=True))
        assert shown["free disk"] == f"64.9{NOBREAK}GiB"
        assert (shown["clock"], shown["SMT"], shown["L2"]) == (f"3.40{NOBREAK}GHz", "no", f"1{NOBREAK}MiB")
        assert shown[LONG] == "a value beside a long name"
        assert shown['<b onmouseover="alert(1)">bold</b>'] == LONG
        assert facts.get_by_text("64.9").locator("xpath=ancestor-or-self::dd").get_attribute("title") == (
            "free_disk_bytes: 69723832320"
        )
        assert facts.locator("h3").all_inner_texts() == ["hardware", "state", "caches", "other"]
        assert facts.locator("b").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert min(one.bounding_box()["width"] for one in facts.locator("dd").all()) > 100
        changes = page.locator("section[aria-labelledby=changes] tbody").inner_text()
        assert f"512{NOBREAK}KiB" in changes
        assert "caches L2" in changes
