"""The task that the dashboard is for, on results that were really measured.

From the overview to the commit that made a gradient allocate one array more, to what differs between the two programs,
and to the command that measures it again: by mouse and by keyboard alone.
"""

import re

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.system]

MOST_CLICKS = 4


class Hands:
    """Clicks and keys, counted."""

    def __init__(self, page):
        self.page = page
        self.used = 0

    def click(self, locator):
        """One click."""
        self.used += 1
        locator.click()

    def enter(self, locator, most=80):
        """Tab until it has the focus, then Enter: one choice, however many steps lead there."""
        for _ in range(most):
            if locator.evaluate("(element) => element === document.activeElement"):
                self.used += 1
                self.page.keyboard.press("Enter")
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{most} steps of the keyboard do not lead to {locator}")


@pytest.mark.long
@pytest.mark.parametrize("way", ["click", "enter"])
def test_the_commit_that_made_one_array_more_is_found_with_its_plan_and_its_command(browser, measured, way):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=measured.base)
    page = context.new_page()
    hands = Hands(page)
    choose = getattr(hands, way)
    page.goto(measured.base)

    told = page.locator("#news li", has_text=re.compile(r"\barrays \d+ → \d+ \(\+1\)")).first
    assert measured.culprit[:9] in told.inner_text()
    choose(told.get_by_role("link", name=re.compile("^dense_bias_act")).first)
    page.wait_for_url("**/cases/**")
    assert measured.culprit in page.url
    assert re.search(r"arrays \+1, now \d", page.locator("main").inner_text())
    program = page.locator("details.program[open]").first
    assert program.locator(".line-new").count() >= 1
    choose(page.get_by_role("button", name=re.compile("^Copy")).first)
    command = page.evaluate("navigator.clipboard.readText()")

    assert measured.culprit in command
    assert "pullback run" in command
    assert hands.used <= MOST_CLICKS
    context.close()
