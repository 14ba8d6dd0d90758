"""What a page weighs on the wire: itself, its style sheet and its scripts, without Plotly."""

import re

import httpx
import pytest

pytestmark = pytest.mark.browser

MOST_BYTES = 150_000


def test_every_page_is_light_and_says_everything_in_its_html(base):
    with httpx.Client(base_url=base, timeout=60) as client:
        overview = client.get("/overview.json?project=pullback").json()
        workload = overview["heat"]["groups"][0]["href"]
        places = {
            "/?project=pullback": "0.5",
            "/?project=pullback&metric=array_bytes": "none, unlike",
            workload: "faster than unfused",
            f"{workload}?last=5000": "faster than unfused",
            overview["heat"]["groups"][0]["rows"][0]["href"]: "faster than unfused",
            overview["news"][0]["commit_href"]: "unfused",
            overview["news"][0]["cases"][0]["href"]: "unfused",
            "/projects/pullback/compare": "",
            "/projects/pullback/explore": "series",
            "/jobs": "",
            "/help": "unfused",
        }
        for place, says in places.items():
            answer = client.get(place, follow_redirects=True).raise_for_status()
            assert says in answer.text, place
            assets = {
                name for name in re.findall(r'(?:href|src)="(/static/[^"]+)"', answer.text) if "plotly" not in name
            }
            weight = answer.num_bytes_downloaded + sum(client.get(name).num_bytes_downloaded for name in assets)
            assert weight <= MOST_BYTES, (place, weight)
            assert ("plotly" in answer.text) == ("data-figure" in answer.text), place
