"""Triage in a real browser: by keyboard and by hand, with scripts and without."""

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from tests.dashboards.browser.conftest import SCRIPTED, look_for_incidents, made_report

pytestmark = pytest.mark.browser

LIST = "/projects/pullback/incidents"


@pytest.fixture
def incidents(empty_base, database_url):
    """A service with two incidents of counts: one array more at the last commit, less memory four before that."""
    with httpx.Client(base_url=empty_base, timeout=30) as client, start_blocking_portal() as portal:
        for place in (8, 10, 11):
            document = made_report(place)
            document["commit"]["parents"] = [made_report(8 if place == 10 else place - 1)["commit"]["sha"]]
            client.post("/api/v1/reports", json=document).raise_for_status()
            portal.call(look_for_incidents, database_url)
        yield empty_base


def verdicts(base):
    items = httpx.get(f"{base}/api/v1/incidents").json()["items"]
    return {item["id"]: item["verdict"] and item["verdict"]["verdict"] for item in items}


def test_two_keys_triage_the_first_incident_of_the_list_and_letters_in_a_field_are_letters(browser, incidents):
    page = browser.new_context().new_page()
    page.goto(f"{incidents}{LIST}?show=all")
    page.wait_for_selector(SCRIPTED)
    first = int(page.locator("[data-row]").first.get_attribute("data-row"))
    page.locator("input[name=note]").fill("")
    page.locator("input[name=note]").press("e")
    assert page.locator("input[name=note]").input_value() == "e"
    page.locator("h1").click()
    page.keyboard.press("n")  # nothing has the focus
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.closest('[data-row]').dataset.row") == str(first)
    with page.expect_navigation():
        page.keyboard.press("e")
    page.wait_for_selector(SCRIPTED)
    assert verdicts(incidents)[first] == "expected"
    assert [word for word in verdicts(incidents).values() if word] == ["expected"]
    page.context.close()


@pytest.mark.long
def test_on_the_page_of_an_incident_v_goes_to_the_verdicts_and_a_key_gives_one(browser, incidents):
    (first, *_) = verdicts(incidents)
    page = browser.new_context().new_page()
    page.goto(f"{incidents}{LIST}/{first}")
    page.wait_for_selector(SCRIPTED)
    page.keyboard.press("f")  # no verdict has the focus
    page.keyboard.press("v")
    with page.expect_navigation():
        page.keyboard.press("f")
    assert verdicts(incidents)[first] == "fixed"
    assert page.locator("button[aria-pressed=true]").inner_text() == "Fixed"
    page.context.close()


@pytest.mark.long
def test_without_scripts_many_are_ticked_and_judged_at_once(browser, incidents):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{incidents}{LIST}?show=all")
    assert page.locator(".letters:visible").count() == 0  # no keys without the script
    for box in page.locator("input[type=checkbox]").all():
        box.check()
    page.locator("input[name=note]").fill("Known since spring.")
    page.locator("button[value=real]").click()
    given = verdicts(incidents)
    assert given
    assert set(given.values()) == {"real"}
    assert page.url == f"{incidents}{LIST}?show=all"
    page.context.close()
