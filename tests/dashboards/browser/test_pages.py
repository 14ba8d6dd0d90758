"""Pages in a real Chromium: what a reader sees, in both themes, on a phone, by keyboard, without JavaScript.

Every visit fails if the page wrote an error to the console, broke its content security policy or asked another host.
"""

import itertools
import re
from urllib.parse import quote

import httpx
import pytest
from tests.dashboards.browser.conftest import SCRIPTED, SHAS

pytestmark = pytest.mark.browser

OVERVIEW = "/?project=pullback"
DENSE = "/projects/pullback/workloads/dense_bias_act"
LARGE = "dense_bias_act[n=1000,act=tanh,f4,cpu]"
RESTORE = "/projects/pullback/workloads/mul_restore"


@pytest.fixture(scope="module")
def places(base):
    """An address of every kind of page."""
    overview = httpx.get(f"{base}/overview.json?project=pullback").json()
    commit = f"/projects/pullback/commits/{overview['commit']['sha']}"
    report = httpx.get(f"{base}{commit}.json").json()["reports"][0]["href"]
    job = httpx.post(
        f"{base}/api/v1/jobs", json={"project": "pullback", "commit": {"sha": "a" * 40}, "suite": "quick"}
    ).json()["id"]
    case = f"{commit}/cases/{quote(LARGE)}"
    compared = f"/projects/pullback/compare?head={overview['commit']['sha']}"
    explored = "/projects/pullback/explore?workload=dense_bias_act&metric=time"
    board = httpx.post(f"{base}/api/v1/boards", json={"name": "places"}).json()["id"]
    for chart in (explored, f"{DENSE}?plot=array_bytes&memory=array_bytes", compared):
        httpx.post(f"{base}/boards/pin", data={"chart": chart, "board": board})
    boards = ["/boards", f"/boards/{board}", f"/boards/{board}?edit=true", f"/boards/pin?chart={quote(explored)}"]
    settings = ["/settings", "/settings/projects/pullback", "/settings/tokens", "/settings/audit"]
    jobs = ["/jobs", f"/jobs/{job}"]
    return [OVERVIEW, DENSE, RESTORE, commit, case, compared, explored, report, *jobs, *boards, *settings, "/help"]


def test_the_overview_shows_measured_factors(visit):
    page = visit(OVERVIEW)
    row = page.locator("table.heat tr", has_text="n=1000, act=tanh")
    # What changed stands in the cell, large, with its commit; the level beside it.
    assert re.search(r"▲\s*\+3\.1 %\s*0\.5\d\d×", row.inner_text())
    assert "faster than unfused" in row.inner_text()
    kinks = row.locator("a.kink").evaluate_all("links => links.map(link => link.pathname)")
    assert kinks
    assert all(re.search("/commits/[0-9a-f]{40}$", kink) for kink in kinks)
    assert row.locator("svg.spark").count() == 3  # the baseline has one of its times


def test_spark_lines_leave_numbers_their_room_however_narrow_the_column(visit):
    page = visit(OVERVIEW, width=660)
    edges = page.locator("a.cell", has=page.locator("svg.spark")).evaluate_all(
        """(cells) => cells.map((cell) => { const number = document.createRange();
        number.selectNodeContents(cell.querySelector(".value"));
        const line = cell.querySelector("svg.spark").getBoundingClientRect();
        return [number.getBoundingClientRect().right, line.left, line.width]; })"""
    )
    assert len(edges) == 15  # five cases in three variants, the baseline among them
    assert all(number <= line and width > 30 for number, line, width in edges), edges


def test_the_overview_tells_the_newest_commit_and_machine_but_names_nobody(visit, base):
    overview = httpx.get(f"{base}/overview.json?project=pullback").json()
    commit, line = overview["commit"], visit(OVERVIEW).locator(".facts").first
    assert commit["author"]
    for part in (commit["sha"][:9], commit["title"], overview["machine"]):
        assert part in line.inner_text()
    assert line.locator("time").count() == 1
    assert commit["author"] not in line.inner_text()


def test_two_clicks_lead_from_the_overview_to_what_made_an_array_more(visit):
    page = visit(OVERVIEW)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#news li", has_text="arrays 3 → 4").get_by_role("link", name=LARGE).click()  # the first click
    said = page.locator("ul.news").inner_text()
    assert "arrays +1, now 4" in said
    assert f"fused: 3.1 % more time than {SHAS[-2][:9]} (+2.7 % to +3.6 %, 20 groups)" in said
    program = page.locator("details.program[open]")
    assert program.count() == 1
    assert "b3 = multiply" in program.locator(".line-new").first.inner_text()
    frame, alike = program.locator("pre").bounding_box(), program.locator("pre .line-skip").first.bounding_box()
    assert frame["y"] < alike["y"] < frame["y"] + frame["height"]
    page.get_by_role("button", name="Copy").click()  # the second
    command = page.evaluate("navigator.clipboard.readText()")
    assert re.match(r"pullback run --commits [0-9a-f]{40} --suite quick --case 'dense_bias_act\[n=", command)


def test_a_comparison_begins_with_its_verdict(visit, base):
    assert visit("/compare").url.endswith("/projects/wild%2F%3Cnames%3E/compare")  # uploaded to last
    page = visit("/projects/pullback/compare")
    head = httpx.get(f"{base}/overview.json?project=pullback").json()["commit"]["sha"]
    newest = page.get_by_role("link", name=f"compare {head[:9]} with").first  # nobody has to know a hash
    assert f"head={head}" in newest.get_attribute("href")
    assert newest.inner_text().endswith("▲ 7 worse, = 2 back as before")
    page.get_by_label("candidate").fill(head[:12])
    page.get_by_role("button", name="Compare").click()
    verdict = page.locator(".verdict").inner_text()
    assert "7 series are worse, 2 are better" in verdict
    assert "fused arrays up to +33.3 % in 5 series" in verdict
    rows = page.locator("table.compared tbody tr")
    assert rows.count() == 9
    assert "slower, in the same groups" in rows.nth(5).inner_text()
    page.get_by_role("link", name=re.compile("more, unchanged or inconclusive")).click()
    assert page.locator("table.compared tbody tr").count() == 45
    page.locator("details.narrow > summary").click()
    page.locator(".menu").get_by_role("link", name=re.compile("^time")).click()
    assert "metric=time" in page.url
    page.locator("table.compared").get_by_role("link", name="open").first.click()
    opened = page.locator("tr.opened")
    assert opened.locator("svg.still circle").count() == 12
    assert opened.locator("svg.strip .strip-now").count() == 40  # twice uploaded at this commit
    assert opened.locator("svg.strip .strip-before").count() == 20


def test_what_is_copied_into_a_pull_request_says_the_same(visit, base):
    head = httpx.get(f"{base}/overview.json?project=pullback").json()["commit"]["sha"]
    answer = httpx.get(f"{base}/projects/pullback/compare.md?head={head}")
    assert answer.headers["content-type"].startswith("text/markdown")
    assert answer.text.startswith("**▲ 7 series are worse")
    assert sum(line.startswith("| ▲") for line in answer.text.splitlines()) == 7


def test_choices_narrow_each_other_until_series_are_drawn(visit):
    page = visit("/projects/pullback/explore")
    assert page.locator("h1").inner_text() == "45 series"
    assert page.locator("figure").count() == 0
    for choice in ("dense_bias_act", "time"):
        page.locator(".menu").get_by_role("link", name=re.compile(f"^{choice}")).click()
    assert page.locator("h1").inner_text() == "6 series"
    assert page.locator("figure svg.still").count() == 1
    page.get_by_role("link", name="variant", exact=True).click()
    assert page.locator("figure svg.still").count() == 3
    assert page.locator("table tbody tr").count() == 6
    page.get_by_role("searchbox").fill("nothing at all")
    page.get_by_role("button", name="Search").click()
    assert "No series match" in page.locator("main").inner_text()


def test_neighbours_in_history_are_a_key_away(visit, places):
    page = visit(next(place for place in places if "/cases/" in place))
    newest = page.locator(".steps [aria-current]").inner_text()
    page.locator("a[rel=prev]").click()
    page.locator("a[rel=next]").click()
    assert page.locator(".steps [aria-current]").inner_text() == newest
    assert page.locator("svg.strip .strip-before").count() == page.locator("svg.strip .strip-now").count() == 40


def test_a_case_that_failed_says_why(visit, base):
    failed = next(row for row in httpx.get(f"{base}{RESTORE}.json").json()["view"]["rows"] if row["failure"])
    page = visit(failed["href"])
    assert "relative error 3.1e-02" in page.locator(".failed").first.inner_text()


def test_a_commit_counts_arrays_without_a_unit(visit, places):
    page = visit(next(place for place in places if "/commits/" in place))
    page.locator("details.more > summary", has_text="All results").click()
    table = page.locator("table", has_text="samples").first
    column = table.locator("thead th").all_inner_texts().index("arrays")
    counts = [row.locator("th, td").nth(column).inner_text() for row in table.locator("tbody tr").all()]
    assert counts
    assert all(count.isdigit() for count in counts)


def test_a_report_tells_what_was_not_measured(visit, places):
    section = visit(next(place for place in places if "/reports/" in place)).get_by_role("region", name="Not measured")
    refused, absent = section.locator("li").all_inner_texts()
    assert '<script>alert("x")</script>' in refused
    assert absent.startswith("numpy takes part in no case")


def test_the_overview_switches_to_memory_by_its_address(visit):
    page = visit(OVERVIEW)
    page.locator("select[name=metric]").select_option(label="array bytes")
    page.wait_for_url("**metric=array_bytes**")
    assert page.get_by_role("heading", name="Memory against unfused").is_visible()
    assert "none, unlike unfused" in page.locator("table.heat").inner_text()


def test_a_filter_that_fits_no_case_says_so_and_nothing_of_those_it_has_not(visit):
    page = visit(f"{OVERVIEW}&q=zzzz")
    said = page.locator("main").inner_text()
    assert "No cases match" in said
    assert "as measured" not in said
    assert page.locator(".key").count() == 0


def test_the_keyboard_stays_where_it_was_when_a_part_of_the_page_is_exchanged(visit):
    page = visit(OVERVIEW)
    focused = "document.activeElement.name + ' ' + document.activeElement.value"
    for name, value in (("sort", "worst"), ("metric", "array_allocs"), ("sort", "best")):
        page.locator(f"select[name={name}]").focus()
        page.locator(f"select[name={name}]").select_option(value)
        page.wait_for_url(f"**{name}={value}**")
        assert page.evaluate(focused) == f"{name} {value}"
    page.get_by_role("searchbox").fill("dens")
    page.wait_for_url("**q=dens**")
    assert page.evaluate("document.activeElement.name + document.activeElement.selectionStart") == "q4"


def test_what_changed_lately_names_the_commit_that_costs_an_array_more(visit):
    page = visit(OVERVIEW)
    news = page.locator("#news").inner_text()
    assert "arrays 3 → 4 (+1)" in news


def test_the_workload_page_draws_what_its_table_says(visit):
    page = visit(f"{DENSE}?case={quote(LARGE)}")
    drawn = page.evaluate(
        "document.getElementById('figure').data.filter(t => t.mode.includes('markers')).map(t => [t.name, t.y])"
    )
    newest = {name: heights[-1] for name, heights in reversed(drawn)}
    shown = page.locator("table tbody tr").first.inner_text()
    assert f"{newest['fused']:.3f}×" in shown
    assert f"{newest['stateful']:.3f}×" in shown
    assert page.locator(".js-plotly-plot .scatterlayer .point").count() > 20


@pytest.mark.long
def test_a_failed_commit_is_told_with_its_reason_and_has_no_point(visit):
    page = visit(RESTORE)
    assert "relative error 3.1e-02" in page.locator("td.failed").inner_text()
    heights = page.evaluate("document.getElementById('figure').data[0].y.length")
    assert heights > 0
    assert page.evaluate("document.getElementById('figure').layout.shapes.filter(s => s.xref === 'x').length") == 1
    places = page.evaluate(
        "document.getElementById('figure').data.filter(t => t.mode.includes('markers') && t.name !== 'incidents').flatMap(t => t.x.filter((_, i) => t.y[i] !== null))"
    )
    assert 5 not in places


@pytest.mark.long
def test_the_two_plots_share_their_range(visit):
    page = visit(DENSE)
    ranges = page.evaluate(
        """async () => { const figure = document.getElementById('figure');
        await Plotly.relayout(figure, {'xaxis.range': [2, 6]});
        return [figure.layout.xaxis.range, figure.layout.xaxis2.range]; }"""
    )
    assert ranges[0] == ranges[1] == [2, 6]


@pytest.mark.long
def test_hovering_a_point_tells_its_commit(visit):
    page = visit(DENSE)
    page.evaluate("Plotly.Fx.hover(document.getElementById('figure'), [{curveNumber: 1, pointNumber: 9}])")
    hover = page.locator(".hoverlayer").text_content()
    assert "Keep cotangents lazy" in hover
    assert "third author" in hover
    assert "since the commit before" in hover


def test_a_click_on_a_point_leads_to_its_commit(visit):
    page = visit(DENSE)
    mark = page.locator(".js-plotly-plot .scatterlayer .trace .point").last
    mark.scroll_into_view_if_needed()
    point = mark.bounding_box()
    page.mouse.click(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    page.wait_for_url("**/commits/**")
    assert page.locator(".facts", has_text="Cut a broadcast copy").is_visible()


def let_happen(page):
    """Return when the page has painted twice and got an answer: what it was about to begin before has begun."""
    page.evaluate(
        """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
        .then(() => fetch(document.querySelector("link[rel=stylesheet]").href)).then((answer) => answer.text())"""
    )


def test_the_theme_follows_the_system_until_the_reader_chooses_and_is_remembered(visit):
    page = visit(DENSE, theme="dark")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    line = "document.getElementById('figure').data.find(t => t.name === 'fused' && t.line.color).line.color"
    dark, dark_line = page.evaluate(ground), page.evaluate(line)
    page.get_by_role("button", name="Switch to the light theme").click()
    assert page.evaluate(ground) != dark
    while page.evaluate(line) == dark_line:  # a condition inside the page needs eval, which the page forbids
        page.wait_for_timeout(100)
    answer = page.reload()
    assert 'data-theme="light"' in answer.text()  # said before any script could say it
    assert page.evaluate(ground) != dark
    assert page.get_by_role("button", name="Switch to the dark theme").is_visible()


@pytest.mark.long
def test_a_page_behind_the_button_back_wears_the_theme_that_was_chosen_since(visit, base):
    page = visit("/help", theme="light")
    page.goto(f"{base}/fleet")
    page.wait_for_selector(SCRIPTED)
    page.get_by_role("button", name="Switch to the dark theme").click()
    page.go_back()
    assert page.url == f"{base}/help"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    other = page.context.new_page()
    other.goto(f"{base}/help")
    other.wait_for_selector(SCRIPTED)
    other.get_by_role("button", name="Switch to the light theme").click()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as when the reader comes back to this tab
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


@pytest.mark.long
def test_a_live_page_asks_less_often_while_it_is_told_of_an_error(visit, base):
    page = visit("/help")
    page.clock.install(time=0)
    page.clock.pause_at(1)  # from here on time is what the test says
    page.goto(f"{base}/jobs")  # its parts are asked for every five seconds
    told = httpx.get(f"{base}/nothing", headers={"accept": "text/html"}).text
    asked, read = [], []

    def answer(route):
        asked.append(route.request.url)
        route.fulfill(status=200, content_type="text/html", body=told)

    page.route("**/jobs", answer)
    page.on("requestfinished", lambda request: read.append(request) if request.url.endswith("/jobs") else None)

    def asked_after(seconds):
        page.clock.run_for(1_000 * seconds)
        for _ in range(100):  # in the browser's own time it asks, is answered, and reads the answer
            page.evaluate("fetch('/status').then((answer) => answer.text())")
            if len(read) == len(asked):
                break
        page.evaluate("fetch('/status').then((answer) => answer.text())")
        return len(asked)

    asked_after(1)
    page.wait_for_selector(SCRIPTED)
    assert asked_after(5) == 1
    assert asked_after(6) == 1
    assert asked_after(5) == 2
    assert asked_after(11) == 2
    assert page.get_by_role("heading", name="Jobs").is_visible()


@pytest.mark.long
def test_times_are_those_of_the_readers_zone_and_the_whole_instant_comes_on_hover(browser, base):
    context = browser.new_context(timezone_id="Asia/Tokyo", locale="en-GB")
    page = context.new_page()
    page.goto(base + DENSE)
    page.wait_for_selector(SCRIPTED)
    late = page.locator(f"#c-{SHAS[3][:9]} time")  # 21:00 in UTC, six in the morning there
    assert late.get_attribute("datetime") == "2026-03-03T21:00:00Z"
    assert late.inner_text() == "2026-03-04"
    assert late.get_attribute("title") == "2026-03-03T21:00:00Z"
    late.hover()
    instant, told = late.get_attribute("title").splitlines()
    assert instant == "2026-03-03T21:00:00Z"
    assert told.endswith("4 March 2026 at 06:00:00 GMT+9")
    context.close()


def test_the_keyboard_reaches_the_content_and_shows_where_it_is(visit):
    page = visit(OVERVIEW)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    asked = []
    page.on("request", lambda request: None if "/static/" in request.url else asked.append(request.url))
    page.keyboard.press("Enter")
    page.wait_for_url("**#content")
    let_happen(page)
    assert asked == []  # it is the same page: an exchanged part would take the focus with it
    seen = []
    for _ in range(50):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.getAttribute('href')"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
        if seen[-1] and "/workloads/" in seen[-1]:
            break
    else:
        pytest.fail(f"no workload among {seen}")


def test_pages_read_without_javascript(visit):
    page = visit(f"{DENSE}?case={quote(LARGE)}", javascript=False)
    assert re.search(r"0\.5\d\d×", page.locator("table").inner_text())
    still = page.locator("#figure svg.still").first
    assert still.locator("circle").count() == 24
    assert "fused" in still.text_content()


@pytest.mark.long
def test_nothing_moves_when_the_figure_is_drawn(browser, base):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.add_init_script(
        """window.shifted = 0; new PerformanceObserver(list => { for (const entry of list.getEntries())
        window.shifted += entry.value; }).observe({type: 'layout-shift', buffered: true});"""
    )
    page.goto(base + DENSE)
    page.wait_for_selector("[data-drawn=yes]")
    let_happen(page)
    assert page.evaluate("window.shifted") < 0.01
    context.close()


def test_a_figure_is_asked_for_and_drawn_once_and_only_when_the_reader_comes_near(browser, base):
    context = browser.new_context(viewport={"width": 1440, "height": 300})
    context.add_init_script(
        """window.drawings = []; new MutationObserver(changes => { for (const change of changes)
        window.drawings.push(change.target.dataset.drawn); })
        .observe(document, {subtree: true, attributeFilter: ['data-drawn']});"""
    )
    asked = []
    context.on("request", lambda request: asked.append(request.url.partition("?")[0].rpartition("/")[2]))
    page = context.new_page()

    page.goto(f"{base}{DENSE}")
    page.wait_for_selector("[data-drawn=yes]")
    let_happen(page)
    assert page.evaluate("window.drawings") == ["pending", "yes"]
    assert (asked.count("dense_bias_act.figure.json"), asked.count("plotly.min.js")) == (1, 1)

    page.goto("about:blank")
    page.goto(f"{base}{DENSE}#embed")
    let_happen(page)
    assert page.evaluate("[window.drawings.length, 'Plotly' in window]") == [0, False]
    page.emulate_media(media="print")
    assert page.locator("#figure svg.still:visible").count() == 2
    page.emulate_media(media="screen")
    before = page.evaluate("document.documentElement.scrollHeight")
    page.locator("#figure").scroll_into_view_if_needed()
    page.wait_for_selector("[data-drawn=yes]")
    assert page.evaluate("window.drawings") == ["pending", "yes"]
    assert page.evaluate("document.documentElement.scrollHeight") == before
    context.close()


def test_names_that_try_to_break_out_are_shown_as_they_are(visit, base):
    overview = httpx.get(f"{base}/overview.json", params={"project": "wild/<names>"}).json()
    page = visit(overview["heat"]["groups"][0]["href"])
    assert page.locator("h1").inner_text() == 'q<script>alert("x")</script>&'
    assert "<b>bold</b>" in page.locator("table").inner_text()
    assert page.locator("table b").count() == 0
    visit("/?project=" + quote("wild/<names>", safe=""), width=390)


def test_an_unknown_address_answers_in_the_pages_own_style(browser, base):
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(f"{base}/no/such/page")
    assert answer.status == 404
    assert page.get_by_role("heading", name="No such page").is_visible()
    assert page.get_by_role("link", name="Back to the overview").is_visible()
    context.close()


def test_an_empty_dashboard_says_what_to_do_next(empty_base, visit):
    page = visit("/", at=empty_base)
    # `pullback run` without a pullback.toml would measure the workloads that Pullback brings, as a project of the reader's.
    assert "pullback init" in page.locator(".empty pre").inner_text()
    for title, why in (("Compare", "compares two commits"), ("Explore", "draws any series")):
        page.get_by_role("link", name=title, exact=True).click()
        assert page.locator("h1").inner_text() == title
        assert why in page.locator(".empty").inner_text()
        assert f"pullback upload report.json --server {empty_base}" in page.locator(".empty pre").inner_text()
        assert page.locator("nav [aria-current]").inner_text() == title


@pytest.mark.long
def test_no_word_of_a_cell_is_cut_off_where_columns_are_narrow(empty_base, visit, made):
    for place in (10, 11):
        report = made.made_report(place)
        report["harness"] |= {"quality": "busy", "contamination": ["it was loud"]}
        for entry, kind in itertools.product(report["cases"], ("variants", "paired")):
            fused = [one for one in entry[kind] if one["variant"] == "fused"]
            entry[kind] += [{**one, "variant": name} for name in ("jax", "native", "numpy", "torch") for one in fused]
        httpx.post(f"{empty_base}/api/v1/reports", json=report, timeout=30).raise_for_status()
    page = visit("/", width=1280, at=empty_base)
    assert page.locator(".cell .doubt", has_text="busy").count() > 10
    cut = "(cells) => cells.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map((cell) => cell.textContent)"
    assert page.locator(".cell .doubt").evaluate_all(cut) == []
    assert "busy: other processes ran meanwhile" in page.locator(".key").inner_text()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator(".tiles .who").evaluate_all(cut) == []


BROKEN_INTERVALS = """(main) => {
  const words = document.createTreeWalker(main, NodeFilter.SHOW_TEXT), broken = [];
  for (let node; (node = words.nextNode());) {
    for (const found of node.data.matchAll(/[\\d.]+–[\\d.]+/g)) {
      const range = document.createRange();
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      if (new Set([...range.getClientRects()].map((line) => line.top)).size > 1) broken.push(found[0]);
    }
  }
  return broken;
}"""


def test_no_interval_is_broken_behind_its_dash_on_a_phone(visit):
    page = visit(OVERVIEW, width=390)
    said = page.locator("main")
    assert re.search(r"\d–\d", said.inner_text())
    for width in range(320, 391, 10):  # where a line ends depends on what stands before it
        page.set_viewport_size({"width": width, "height": 844})
        assert said.evaluate(BROKEN_INTERVALS) == [], width


@pytest.mark.long
def test_a_command_keeps_its_button_when_its_part_of_the_page_is_exchanged(empty_base, visit):
    page = visit("/", at=empty_base)
    page.evaluate("document.querySelector('.copied').classList.add('seen')")
    page.evaluate("document.dispatchEvent(new Event('stale'))")
    page.wait_for_selector(".copied.seen", state="detached")
    assert page.get_by_role("button", name="Copy the command").is_visible()


def test_the_overview_fills_itself_when_the_first_report_arrives(empty_base, visit, made):
    page = visit("/", at=empty_base)
    assert page.locator(".empty").is_visible()
    httpx.post(f"{empty_base}/api/v1/reports", json=made.made_report(0)).raise_for_status()
    page.wait_for_selector("table.heat", timeout=20_000)


def test_arrow_keys_lead_through_the_heat_map_which_is_one_stop(visit):
    page = visit("/?project=pullback")
    stops = page.locator("a.cell[tabindex='0']")
    assert stops.count() == 1
    stops.focus()
    before = page.evaluate("document.activeElement.title")
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.matches('a.cell[tabindex=\"0\"]')"), key
    assert page.evaluate("document.activeElement.title") == before
    page.keyboard.press("End")
    assert page.evaluate(
        "document.activeElement.closest('tr').querySelector('td:last-child a') === document.activeElement"
    )
    assert stops.count() == 1
    plain = visit("/?project=pullback", javascript=False)
    assert plain.locator("a.cell").count() == 15
    assert plain.locator("a.cell[tabindex]").count() == 0
