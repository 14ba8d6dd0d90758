"""The feed: one entry an incident, the same id at every asking, new again when people were told more."""

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

from pullback_dashboards.feed.view import feed
from pullback_dashboards.incidents.view import IncidentLine

ATOM = "{http://www.w3.org/2005/Atom}"
FOUND = datetime(2026, 3, 1, tzinfo=UTC)


def line(number=7, **changes):
    known = {
        "id": number, "href": f"/projects/lab/incidents/{number}", "sentence": "`fused` takes 30 % more time.", "told": "",
        "kind": "worse", "state": "confirmed", "is_open": True, "commit": "3f2a91c", "commit_href": "", "cases": 2, "machines": 1,
        "found_at": FOUND, "evidence": ("measured in turns",),
    }  # fmt: skip
    return IncidentLine(**known | changes)


def read(*lines, told=None, project="lab", about=""):
    body = feed(project, lines, told or {}, base="https://host", path="/feed.atom", incidents="/incidents", about=about)
    return ET.fromstring(body)  # noqa: S314 - our own text


def test_every_incident_is_an_entry_with_its_address():
    document = read(line(7), line(8, kind="wrong_gradient"))
    seven, eight = document.findall(f"{ATOM}entry")
    assert seven.find(f"{ATOM}title").text == "▲ `fused` takes 30 % more time."
    assert seven.find(f"{ATOM}link").get("href") == "https://host/projects/lab/incidents/7"
    assert seven.find(f"{ATOM}summary").text == "Confirmed: measured in turns, in 2 cases on 1 machine."
    assert [entry.find(f"{ATOM}category").get("term") for entry in (seven, eight)] == ["worse", "wrong_gradient"]
    assert seven.find(f"{ATOM}id").text != eight.find(f"{ATOM}id").text


def test_an_entry_is_new_again_when_people_were_told_more_under_the_same_id():
    later = FOUND + timedelta(days=3)
    (before,) = read(line()).findall(f"{ATOM}entry")
    document = read(line(state="resolved"), told={7: later})
    (after,) = document.findall(f"{ATOM}entry")
    assert before.find(f"{ATOM}id").text == after.find(f"{ATOM}id").text
    assert before.find(f"{ATOM}updated").text == after.find(f"{ATOM}published").text == FOUND.isoformat()
    assert after.find(f"{ATOM}updated").text == document.find(f"{ATOM}updated").text == later.isoformat()


def test_names_may_hold_anything():
    document = read(project='<&"\x00\x1b]]>', about="of <b>")
    assert document.find(f"{ATOM}title").text.startswith('<&"')


def test_a_project_without_incidents_is_a_feed_all_the_same():
    document = read()
    assert document.findall(f"{ATOM}entry") == []
    assert document.find(f"{ATOM}updated").text
