"""The feed: one entry a change, the same id at every asking."""

from xml.etree import ElementTree as ET

from pullback_dashboards.feed.view import feed
from pullback_dashboards.news.view import LATELY, tell

ATOM = "{http://www.w3.org/2005/Atom}"


def read(history, project="lab"):
    told = tell(history, LATELY, project=project, machine=None).news
    body = feed(project, told, history.commits, base="https://host", path="/feed.atom", overview="/?project=lab")
    return told, ET.fromstring(body)  # noqa: S314 - our own text


def test_every_change_is_an_entry_with_its_address(history):
    told, document = read(history)
    entries = document.findall(f"{ATOM}entry")
    assert len(entries) == len(told) > 0
    for entry, item in zip(entries, told, strict=True):
        assert item.text in entry.find(f"{ATOM}title").text
        assert entry.find(f"{ATOM}link").get("href") == f"https://host{item.cases[0].href}"
        assert entry.find(f"{ATOM}updated").text.startswith("2026-03-")


def test_ids_stay_and_differ(history):
    ids = [entry.find(f"{ATOM}id").text for entry in read(history)[1].findall(f"{ATOM}entry")]
    assert ids == [entry.find(f"{ATOM}id").text for entry in read(history)[1].findall(f"{ATOM}entry")]
    assert len(set(ids)) == len(ids)


def test_names_may_hold_anything(history):
    _, document = read(history, project='<&"\x00\x1b]]>')
    assert document.find(f"{ATOM}title").text.startswith('<&"')


def test_a_project_without_news_is_a_feed_all_the_same(build):
    _, document = read(build.history(build.line("unfused", [None])))
    assert document.findall(f"{ATOM}entry") == []
    assert document.find(f"{ATOM}updated").text
