"""Every page in a real Chromium, in both themes, in two fonts, wide and on a phone: what must hold wherever one looks.

The pages are those that the application has routes for, at the addresses that links lead to. Of each route the first is loaded
wide, narrow and without scripts, once for all tests of this file, and everything that was found is told: loading is what costs
time. They are a third of the routes; a test that is long looks at all of them so, and at the largest page of each route and
one with wild names, which are loaded wide.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from tests.dashboards.browser import sitemap
from tests.dashboards.browser.conftest import SCRIPTED

pytestmark = pytest.mark.browser

AXE = Path(AXE_FILE_PATH).read_text(encoding="utf-8")
LOOKING = Path(__file__).with_name("looking.js").read_text(encoding="utf-8")

WIDE, MIDDLE, NARROW = ({"width": width, "height": height} for width, height in ((1440, 900), (768, 900), (390, 844)))
PAPER = {"width": 718, "height": 1000}
MOST_BYTES = 150_000  # of a page with everything it loads, Plotly apart
MOST_SHIFT = 0.02
LAID_OUT = ["link-in-text-block", "target-size", "scrollable-region-focusable"]  # what depends on width and colours
NOT_LINKED = {
    "/login",  # asked for by the service, where it wants a token
    "/projects/{project:path}",  # guessed by people who know the addresses below it
}

SHIFTS = """window.shifted = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries())
  if (!entry.hadRecentInput) window.shifted += entry.value; }).observe({ type: "layout-shift", buffered: true });"""

# Inter as wide as Verdana, with lines taller than those of Noto Sans (1.36 of the size): no system's font takes more room.
ROOMY_FONT = """() => new FontFace("Roomy", 'local("Inter Regular"), local("Arial")', {
  ascentOverride: "110%", descentOverride: "30%", lineGapOverride: "0%", sizeAdjust: "112%",
}).load().then((font) => { document.fonts.add(font); document.documentElement.style.setProperty("--font", "Roomy"); })"""

RUN_AXE = """(rules) => axe.run(document, {
  resultTypes: ["violations"], rules: { "target-size": { enabled: true } },
  ...(rules ? { runOnly: { type: "rule", values: rules } } : {}),
}).then(({ violations }) => violations.flatMap(({ id, help, nodes }) => nodes.map(({ html, any, all, none }) =>
  `${id} (${help}): ${html.slice(0, 120)} ${[...any, ...all, ...none].map(({ message }) => message).join(" ").slice(0, 200)}`)))"""

WEIGHT = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .filter(({ name, initiatorType }) => initiatorType !== "fetch" && !name.includes("plotly"))
  .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)"""

# What can be read, word by word, but for what scripts add (buttons, figures, times in the reader's own zone) and for what
# the clock changes between two loads: estimates, and how long a chore has waited or run.
WORDS = """() => { const words = []; const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const apart = "button, time, .letters, .figure, .spoken, [role=status], [data-label=oldest], [data-label=for], [data-label=last]";
  while (walk.nextNode()) { const { parentElement: parent, data } = walk.currentNode;
    if (parent.checkVisibility() && !parent.closest(apart)) words.push(...data.replace(/in about \\S+ \\S+/g, "in about").split(/\\s+/)); }
  return words.filter(Boolean); }"""


class Visitor:
    """One window that goes from page to page and keeps what was wrong."""

    def __init__(self, browser, base, *, size, theme, **options):
        self.base, self.theme, self.size = base, theme, size
        self.complaints = []
        self._context = browser.new_context(viewport=size, color_scheme=theme, reduced_motion="reduce", **options)
        self.page = self._context.new_page()
        if options.get("java_script_enabled", True):
            self.page.add_init_script(SHIFTS)
        self.address = None
        self.asked = []
        self.page.on("console", self._written)
        self.page.on("pageerror", lambda error: self.say(f"raised {error}"))
        self.page.on("request", lambda request: self._ask(request.url))
        self.page.on("requestfailed", lambda r: "ERR_ABORTED" in (r.failure or "") or self.say(f"{r.url}: {r.failure}"))
        self.page.on("response", self._answered)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._context.close()

    def say(self, what):
        """Keep a complaint about the page at hand; once, however often the page gives cause for it."""
        complaint = f"{unquote(self.address)[:70]} [{self.size['width']} {self.theme}] {' '.join(what.split())}"
        if complaint not in self.complaints:
            self.complaints.append(complaint)

    def goto(self, address):
        """Load a page, to the last mark of its figures."""
        self.address, self.asked = address, []
        self.page.goto(self.base + address)
        self.settle()

    def wear(self, theme):
        """Change what the system says it likes."""
        self.theme = theme
        self.page.emulate_media(color_scheme=theme)

    def write_roomily(self):
        """Change the font of the page at hand to one that takes more room than the system's."""
        self.page.evaluate(ROOMY_FONT)

    def write_plainly(self):
        """Change the font of the page at hand back."""
        self.page.evaluate("document.documentElement.style.removeProperty('--font')")

    def become(self, size):
        """Change the window to another size, and wait for what is drawn anew."""
        self.size = size
        self.page.set_viewport_size(size)
        self.settle()

    def resize(self, size):
        """Try a window of another size, which the page at hand must fit, and back."""
        self.page.set_viewport_size(size)
        if (beyond := self.page.evaluate("document.documentElement.scrollWidth - innerWidth")) > 0:
            self.say(f"{beyond} px wider than a window of {size['width']}")
        self.page.set_viewport_size(self.size)

    def print_out(self):
        """Say what would be wrong on paper with the page at hand."""
        self.page.set_viewport_size(PAPER)
        self.page.emulate_media(media="print")
        ground = self.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        ink = self.page.evaluate("getComputedStyle(document.querySelector('main')).color")
        if ground != "rgb(255, 255, 255)" or max(map(int, re.findall(r"\d+", ink)[:3])) > 80:
            self.say(f"prints {ink} on {ground}")
        for control in ("header.bar nav", "button", "form", ".skip"):
            if self.page.locator(f"{control}:visible").count():
                self.say(f"prints its {control}")
        self.look(rules=["link-in-text-block"])
        self.page.emulate_media(media="screen")
        self.page.set_viewport_size(self.size)

    def settle(self):
        """Wait until scripts run, and until what is drawn is drawn as the page now stands."""
        self.page.wait_for_selector(SCRIPTED)
        if self.page.locator("[data-figure]").count():
            self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            self.page.wait_for_selector("[data-drawn=yes]", timeout=30_000)

    def look(self, theme=None, *, keyboard=False, rules=None):
        """Everything that can be told of the page as it stands."""
        if theme:
            self.wear(theme)
            self.settle()
        for complaint in self.page.evaluate(LOOKING, keyboard):
            self.say(complaint)
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(AXE)
        for violation in self.page.evaluate(RUN_AXE, rules):
            self.say(violation)

    def loaded(self):
        """What loading it cost and moved."""
        figures = self.page.locator("[data-figure]").count()
        plotly = [address for address in self.asked if "plotly" in address]
        if bool(figures) != bool(plotly):
            self.say(f"has {figures} interactive figures and asked for Plotly {len(plotly)} times")
        if (size := self.page.evaluate(WEIGHT)) > MOST_BYTES:
            self.say(f"weighs {size} bytes")
        if (shift := self.page.evaluate("window.shifted")) > MOST_SHIFT:
            self.say(f"moved by {shift:.3f} while it was loading")
        if (commands := self.page.locator("pre[data-copy]").count()) != self.page.locator(".copied > .copy").count():
            self.say(f"has {commands} commands to copy, not all with the button for it")
        if running := self.page.evaluate("document.getAnimations().length"):
            self.say(f"moves ({running} animations) for a reader who asked for no motion")

    def _written(self, message):
        of_itself = message.location.get("url") == self.base + self.address  # an error page has the status of an error
        if message.type in {"error", "warning"} and not (of_itself and "a status of 404" in message.text):
            self.say(f"{message.type}: {message.text}")

    def _ask(self, url):
        self.asked.append(url)
        if not url.startswith((self.base, "data:", "blob:")):
            self.say(f"asked another host: {url}")

    def _answered(self, response):
        path = urlsplit(response.url).path
        if response.status >= 400 and not response.request.is_navigation_request():
            self.say(f"{path} answered {response.status}")
        if "plotly" in path and "immutable" not in response.headers.get("cache-control", ""):
            self.say(f"{path} is not cached for ever")


@pytest.fixture(scope="module")
def site(base):
    """Every page of a service with history, a job that is being done and one that waits."""
    with httpx.Client(base_url=f"{base}/api/v1", timeout=30) as client:

        def post(path, **body):
            return client.post(path, json=body).raise_for_status().json()

        machine = {"fingerprint": "print-of-lab-9", "name": "lab-9", "facts": {"cpu": "EPYC 7B13"}}
        agent = post("/agents/enroll", name="an agent", labels={}, machine=machine)["agent_id"]
        for number in (1, 2):
            commit = {"sha": f"{number}" * 40, "title": "Not measured before"}
            post("/jobs", project="pullback", commit=commit, suite="quick")
            if number == 1:
                # The first that waits, which another test of this service may have queued; none where one is being done.
                answer = client.post(f"/agents/{agent}/claim", json={"wait_s": 0, "labels": {}}).raise_for_status()
                if answer.status_code == httpx.codes.NO_CONTENT:
                    continue
                claim = answer.json()
                attempt = f"/jobs/{claim['job']['id']}/attempts/{claim['attempt']}"
                progress = {"done": 3, "total": 6, "message": "poly9_broadcast"}
                post(f"{attempt}/heartbeat", lease_token=claim["lease_token"], phase="measuring", progress=progress)
        if sitemap.route_of("/api/v1/boards", "POST"):
            board = post("/boards", name="Dense layers", project="pullback")["id"]
            post(f"/boards/{board}/charts", kind="workload", project="pullback", workload="dense_bias_act")
            chosen = {"workload": ["dense_bias_act"], "metric": ["time"]}
            post(f"/boards/{board}/charts", kind="explore", project="pullback", query=chosen)
    return sitemap.explore(
        base, starts=("/", "/help")
    )  # /help: as one comes from elsewhere, who brings no project along


@dataclass
class Looks:
    """What loading every page showed."""

    complaints: list[str]
    on_paper: list[str] = field(default_factory=list)
    lost: dict[str, list[str]] = field(default_factory=dict)
    """Words that scripts alone show, by address."""
    scripts_alone: list[str] = field(default_factory=list)
    """Controls and figures that nobody without scripts has."""


def look_at(browser, base, addresses, firsts=()):
    """Load each page and look at it wide and narrow, in both themes and two fonts; return what was found.

    A window of the width of a tablet is tried with the page that was loaded in a wide one, and a narrow one too, but for
    `firsts`: those are loaded in a narrow window of their own. So is paper, for `firsts`, which are loaded without scripts as
    well, right behind: words change with time.
    """
    looks = Looks([])
    with (
        Visitor(browser, base, size=WIDE, theme="light") as visitor,
        Visitor(browser, base, size=NARROW, theme="dark") as narrow,
        Visitor(browser, base, size=WIDE, theme="light", java_script_enabled=False) as plain,
    ):
        for address in addresses:
            visitor.goto(address)
            if address in firsts:
                _compare(visitor, plain, address, looks)
            visitor.loaded()
            visitor.look(keyboard=True)
            visitor.write_roomily()
            visitor.look("dark", rules=LAID_OUT)
            visitor.resize(MIDDLE)
            if address in firsts:
                on_screen, visitor.complaints = visitor.complaints, looks.on_paper
                visitor.print_out()
                visitor.complaints = on_screen
                narrow.goto(address)
                narrow.loaded()
                _look_narrow(narrow)
            else:
                visitor.write_plainly()
                visitor.become(NARROW)
                _look_narrow(visitor)
                visitor.become(WIDE)
            visitor.wear("light")
        looks.complaints += visitor.complaints + narrow.complaints
    return looks


def _look_narrow(visitor):
    """Look at a page in a narrow window, as it is in the dark and with a roomy font in the light; it is dark again at the end."""
    visitor.look("dark", rules=LAID_OUT)
    visitor.write_roomily()
    visitor.look("light", rules=LAID_OUT)
    visitor.wear("dark")


def _compare(scripted, plain, address, looks):
    """Compare the page at hand with what is there without scripts."""
    plain.address, plain.asked = address, []
    plain.page.goto(plain.base + address)
    words = set(plain.page.evaluate(WORDS))
    if gone := [word for word in scripted.page.evaluate(WORDS) if word not in words]:
        looks.lost[address] = gone
    for button in plain.page.locator("button:visible").all():
        if not button.evaluate("(button) => button.type === 'submit' && button.form !== null"):
            looks.scripts_alone.append(f"{address}: {button.inner_text()}")
    for figure in plain.page.locator(".figure").all():
        if not figure.locator("svg.still").count():
            looks.scripts_alone.append(f"{address}: a figure")
    looks.scripts_alone += [asked for asked in plain.asked if "plotly" in asked or ".figure.json" in asked]


@pytest.fixture(scope="module")
def worth_a_look(site):
    """The addresses of the first page of every route, and the others that are worth a look."""
    worth = site.worth_a_look()
    firsts = {next(address for address in found if address in worth) for found in site.addresses.values()}
    return [address for address in worth if address in firsts], [address for address in worth if address not in firsts]


@pytest.fixture(scope="module")
def looks_of_the_site():
    """What the first test that asked has seen, for those that follow."""
    return []


@pytest.fixture
def looks(browser, site, worth_a_look, looks_of_the_site):
    """Looks at the first page of every third route, printed and without scripts too."""
    if not looks_of_the_site:
        firsts = worth_a_look[0][::3]
        looks_of_the_site.append(look_at(browser, site.base, [*firsts, "/login", "/no/such/page"], firsts))
    return looks_of_the_site[0]


FAULTY = """<!doctype html><html><body style="background: #fff"><main id="content"><h2>A heading of the second rank</h2>
<p style="color: #999">pale</p><p style="background: #ddd; color: #777">pale on grey</p>
<svg width="99" height="20"><rect width="99" height="20" fill="#555"/><text y="15" fill="#333">pale in a drawing</text></svg>
<div style="width: 2000px">wide</div><button style="outline: 0">ringless</button>
<div style="overflow: hidden; width: 60px"><a href="#content" style="outline: 2px solid">cut off</a></div></main></body></html>"""


def test_a_look_finds_what_is_wrong(browser):
    context = browser.new_context(viewport=NARROW)
    page = context.new_page()
    page.set_content(FAULTY)
    page.keyboard.press("Tab")
    found = " ".join(page.evaluate(LOOKING, True))
    for complaint in (
        "px wider than its window: <div",
        'looks as the browser draws it: <button class=""> ringless',
        'its language is ""',
        "not exactly one h1",
        'a contrast of 2.85: <p class=""> pale',
        'a contrast of 3.30: <p class=""> pale on grey',
        'a contrast of 1.69: <text class=""> pale in a drawing',
        "the first stop of the keyboard does not skip",
        'shows no focus ring: <button class=""> ringless',
        "has its focus ring cut off by <div",
    ):
        assert complaint in found
    context.close()


def test_links_lead_to_every_page_and_nowhere_else(site):
    unlinked = set(sitemap.PAGES) - set(site.addresses) - site.redirected - NOT_LINKED
    assert not unlinked, (
        f"no link leads to {', '.join(sorted(unlinked))}: make the address in pullback_dashboards/links.py and link to it in the "
        "template of another page; a page that is reached without a link belongs into NOT_LINKED of this file, with the reason"
    )
    assert site.broken == []


def test_every_page_can_be_read_and_worked_with_by_everybody(looks):
    assert looks.complaints == []


@pytest.mark.long
def test_the_pages_of_all_routes_the_largest_pages_and_those_with_wild_names_can_be_too(browser, site, worth_a_look):
    firsts, others = worth_a_look
    assert look_at(browser, site.base, [*firsts, *others], firsts) == Looks([])


def test_every_page_has_a_title_of_its_own(site):
    of_routes = {}
    for path, found in site.addresses.items():
        of_routes.setdefault(re.sub(r"[0-9a-f]{7,}|\d+", "#", site.titles[next(iter(found))]), []).append(path)
    assert {title: paths for title, paths in of_routes.items() if len(paths) > 1} == {}
    assert all(title.endswith(" · Pullback") for title in site.titles.values())


def test_every_page_says_the_same_without_javascript(looks):
    assert looks.lost == {}
    assert looks.scripts_alone == []


@pytest.mark.long
@pytest.mark.parametrize("everywhere", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_service_without_a_single_result_is_as_good_to_use(browser, empty_base, everywhere):
    found = sitemap.explore(empty_base)
    assert found.broken == []
    addresses = ["/", "/jobs", "/compare", "/explore", *(found.worth_a_look() if everywhere else ())]
    assert look_at(browser, empty_base, dict.fromkeys(addresses)).complaints == []


def test_signing_in_is_as_good_to_use(browser, guarded_base):
    assert look_at(browser, guarded_base, ["/login"]).complaints == []


def test_every_page_prints_black_on_white_without_its_controls(looks):
    assert looks.on_paper == []
