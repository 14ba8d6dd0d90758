"""The list of projects in a browser."""

import os

import pytest

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_the_start_lists_the_projects_and_leads_to_their_overviews(visit, width, theme):
    page = visit("/", width=width, theme=theme)
    if shots := os.environ.get("PULLBACK_SHOTS"):
        page.screenshot(path=f"{shots}/projects-{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("link", name="pullback", exact=True).click()
    assert page.locator("h1").inner_text() == "pullback"
