"""JSON and CSV say what the page shows, over the real application. No browser is needed for that."""

import csv
import io
import re
from html import unescape

import httpx
import pytest
from tests.dashboards.browser.conftest import made_report

DENSE = "/projects/pullback/workloads/dense_bias_act"


def text_of(html):
    return re.sub(r"[ \n]+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def test_every_cell_of_the_heat_map_is_in_its_other_formats(base):
    page = text_of(httpx.get(f"{base}/?project=pullback").text)
    view = httpx.get(f"{base}/overview.json?project=pullback").json()
    rows = list(csv.DictReader(io.StringIO(httpx.get(f"{base}/overview.csv?project=pullback").text)))
    cells = [cell for group in view["heat"]["groups"] for row in group["rows"] for cell in row["cells"]]
    assert len(cells) == len(rows) == 15
    for cell, row in zip(cells, rows, strict=True):
        assert cell["value"] in page
        assert row["variant"] == cell["variant"]
        assert row["words"] == cell["words"]


def test_every_mark_of_the_workload_page_is_in_its_other_formats(base):
    page = text_of(httpx.get(base + DENSE).text)
    view = httpx.get(f"{base}{DENSE}.json").json()["view"]
    rows = list(csv.DictReader(io.StringIO(httpx.get(f"{base}{DENSE}.csv").text)))
    marks = [mark for row in view["rows"] for mark in row["marks"].values()]
    assert len(marks) == len(rows) == 72
    for mark in marks:
        assert (mark["factor"] or mark["shown"]) in page
    assert {row["outcome"] for row in rows} >= {"faster", "less"}


def test_the_state_of_a_page_is_in_its_address(base):
    page = httpx.get(f"{base}{DENSE}?y=absolute&scale=log&x=date").text
    assert f"{DENSE}.json?y=absolute&amp;scale=log&amp;x=date" in page
    view = httpx.get(f"{base}{DENSE}.json?y=absolute&scale=log&x=date").json()["view"]
    assert (view["state"]["y"], view["state"]["scale"], view["state"]["x"]) == ("absolute", "log", "date")


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("/?project=nobody", 404, "nobody"),
        ("/?project=pullback&metric=mood", 404, "array_bytes"),
        ("/?project=pullback&machine=other", 404, "lab-7"),
        (f"{DENSE}?machine=other", 404, "choose another machine"),
        ("/projects/nobody", 404, "nobody"),
        (f"{DENSE}?case=nope", 404, "dense_bias_act[n=100"),
        (f"{DENSE}?memory=nope", 404, "array_allocs"),
        (f"{DENSE}?y=sideways", 422, "query.y"),
        ("/projects/pullback/workloads/nope", 404, "nope"),
        ("/projects/pullback/commits/1234567", 404, "1234567"),
        ("/reports/00000000-0000-0000-0000-000000000000", 404, "no report"),
        ("/reports/nonsense", 422, "report_id"),
        ("/jobs/999999", 404, "999999"),
        ("/jobs?state=lazy", 422, "query.state"),
    ],
)
def test_what_does_not_exist_is_said_in_one_sentence_in_the_pages_style(base, address, status, words):
    answer = httpx.get(base + address, headers={"accept": "text/html"})
    assert answer.status_code == status
    assert words in text_of(answer.text)
    assert "Back to the overview" in answer.text


def test_a_commit_is_found_by_the_beginning_of_its_hash(base):
    sha = httpx.get(f"{base}/overview.json?project=pullback").json()["commit"]["sha"]
    assert httpx.get(f"{base}/projects/pullback/commits/{sha[:9]}.json").json()["commit"]["sha"] == sha


def test_a_chart_as_an_image_is_that_of_the_page_or_says_why_there_is_none(base):
    explored = "/projects/pullback/explore"
    one = httpx.get(f"{base}{explored}.svg?workload=dense_bias_act&metric=time&split=variant")
    assert one.headers["content-type"] == "image/svg+xml"
    assert one.text.count("<circle") == 24  # two sizes of fused at twelve commits
    assert "more than 24 series" in httpx.get(f"{base}{explored}.svg").text
    assert "no series match" in httpx.get(f"{base}{explored}.svg?metric=nothing").text
    assert httpx.get(f"{base}{explored}?split=colour", headers={"accept": "text/html"}).status_code == 422
    rows = list(
        csv.DictReader(io.StringIO(httpx.get(f"{base}{explored}.csv?workload=dense_bias_act&metric=time").text))
    )
    assert sorted(row["variant"] for row in rows) == ["fused", "fused", "stateful", "stateful", "unfused", "unfused"]
    memory = httpx.get(f"{base}{DENSE}.svg?plot=array_bytes").text
    assert "array bytes, variant ÷ unfused" in memory


def _size(answer):
    """The pixels of a PNG, as its header tells them."""
    assert answer.headers["content-type"] == "image/png", answer.text
    assert answer.content[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(answer.content[16:20]), int.from_bytes(answer.content[20:24])


def test_an_image_that_was_kept_is_shown_to_nobody_else(base):
    """A project may be private: what a browser keeps of it counts for the one who asked."""
    for suffix in (".svg", ".png", ".badge.svg"):
        headers = httpx.get(f"{base}{DENSE}{suffix}").headers
        assert headers["cache-control"].startswith("private")
        assert {"cookie", "authorization"} <= {name.strip().lower() for name in headers["vary"].split(",")}


def test_pages_tell_feed_readers_and_previews_what_they_are(base):
    page = httpx.get(base + DENSE).text
    preview = re.search(r'<meta property="og:image" content="(.*?)">', page)[1]
    assert preview == f"{base}{DENSE}.card.png"
    assert _size(httpx.get(preview)) == (1200, 630)
    assert _size(httpx.get(f"{base}{DENSE}.png?plot=array_bytes")) == (1720, 500)
    assert _size(httpx.get(f"{base}/projects/pullback/explore.png?metric=time&width=600")) == (1200, 500)
    assert _size(httpx.get(f"{base}/projects/pullback/explore.card.png?metric=nothing")) == (1200, 630)
    assert httpx.get(f"{base}{DENSE}.png?width=9000").status_code == 422
    newest = httpx.get(f"{base}/overview.json?project=pullback").json()["commit"]["sha"]
    compared = httpx.get(f"{base}/projects/pullback/compare?head={newest}").text
    preview = re.search(r'<meta property="og:image" content="(.*?)">', compared)[1]
    assert preview == f"{base}/projects/pullback/compare.card.png?head={newest}"
    assert _size(httpx.get(preview)) == (1200, 630)
    assert "series are worse" in re.search(r'<meta property="og:image:alt" content="(.*?)">', compared)[1]
    assert "og:image" not in httpx.get(f"{base}/projects/pullback/compare").text
    assert httpx.get(f"{base}/projects/pullback/compare.card.png").status_code == 404
    assert re.search(r'<meta property="og:description" content="fused: \d\.\d× faster', page)
    assert re.search(
        r'type="application/atom\+xml" title="Incidents" href="/projects/pullback/feed.atom\?machine=lab-7"', page
    )
    snippet = re.search(r"\[!\[dense\\_bias\\_act\]\((.*?)\)\]\((.*?)\)", unescape(page))
    badge, target = snippet.groups()
    assert httpx.get(badge).headers["content-type"] == "image/svg+xml"
    assert "not measured" not in httpx.get(badge).text
    assert target == base + DENSE
    wild = httpx.get(f"{base}/projects/wild%2F%3Cnames%3E/explore").text
    assert "/projects/wild%2F%3Cnames%3E/explore.json" in wild  # a slash in a name is no step


def test_the_content_security_policy_allows_no_script_from_inside_a_page(base):
    answer = httpx.get(f"{base}/?project=pullback")
    policy = answer.headers.get_list("content-security-policy")
    assert len(policy) == 1
    assert "script-src 'self';" in policy[0]
    assert not re.search(r"<script(?![^>]*(src=|application/json))", answer.text)
    assert " onclick" not in answer.text


def test_only_pages_that_plotly_draws_on_may_have_styles_of_their_own(base):
    for address in (
        "/?project=pullback",
        DENSE,
        "/compare?project=pullback",
        "/jobs",
        "/fleet",
        "/settings",
        "/no/such/page",
    ):
        answer = httpx.get(base + address, headers={"accept": "text/html"}, follow_redirects=True)
        drawn = "plotly.min.js" in answer.text
        assert ("'unsafe-inline'" in answer.headers["content-security-policy"]) == drawn, address
        assert bool(re.search(r"<style|<[^>]*\sstyle=", answer.text)) == drawn, address


@pytest.mark.long
@pytest.mark.browser
def test_the_heat_map_has_room_for_as_many_columns_as_there_are(visit):
    page = visit("/?project=pullback")
    columns = page.locator(".heat thead th + th").count()
    wide = "() => parseFloat(getComputedStyle(document.querySelector('.heat')).minWidth)"
    assert page.evaluate(wide) == 250 + columns * 150
    page.evaluate("document.querySelector('.heat').className = 'heat tens-1 ones-2'")
    assert page.evaluate(wide) == 250 + 12 * 150


def test_what_is_no_page_may_load_nothing(base):
    for suffix in (".json", ".csv", ".md", ".png", ".figure.json"):
        answer = httpx.get(base + DENSE + suffix)
        assert answer.is_success, suffix
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"


@pytest.mark.sample(every=2)
@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_chart_opened_by_itself_has_its_colours(visit, theme):
    page = visit(f"{DENSE}.svg", theme=theme)
    ground = page.evaluate("getComputedStyle(document.querySelector('rect')).fill")
    assert (min(map(int, re.findall(r"\d+", ground))) > 200) == (theme == "light")


def test_assets_are_cached_for_ever_under_their_hash(base):
    address = re.search(r'href="(/static/[^"]+\.css)"', httpx.get(base, follow_redirects=True).text)[1]
    answer = httpx.get(base + address)
    assert "immutable" in answer.headers["cache-control"]
    assert "immutable" not in httpx.get(f"{base}/static/0000/pullback.css").headers["cache-control"]
    assert httpx.get(f"{base}/static/0000/secret").status_code == 404


def test_pages_weigh_little_and_only_those_with_figures_load_plotly(base):
    for address in ("/?project=pullback", DENSE, "/jobs", "/help"):
        html = httpx.get(base + address).text
        assert len(html) < 150_000
        assert ("plotly.min.js" in html) == (address == DENSE)


def test_pages_need_a_login_where_the_service_needs_a_token(guarded_base):
    with httpx.Client(base_url=guarded_base, headers={"accept": "text/html"}) as browser:
        refused = browser.get("/jobs?state=done")
        assert refused.status_code == 401
        assert 'name="next" value="/jobs?state=done"' in refused.text
        assert "This page needs a token of this service" in refused.text
        assert "Bearer" not in refused.text
        wrong = browser.post("/login", data={"token": "plb_wrong", "next": "/jobs"})
        assert wrong.status_code == 401
        assert "Unknown token" in wrong.text
        right = browser.post("/login", data={"token": "the-secret", "next": "/jobs?state=done"})
        assert (right.status_code, right.headers["location"]) == (303, "/jobs?state=done")
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        shown = browser.get("/jobs?state=done")
        assert shown.status_code == 200
        job = {"project": "demo", "commit": {"sha": "1" * 40}, "suite": "quick", "timeout_s": 60}
        assert browser.post("/api/v1/jobs", json=job).status_code == 403
        proof = re.search(r'name="csrf" value="([0-9a-f]{128})"', shown.text)[1]
        assert browser.post("/api/v1/jobs", json=job, headers={"x-csrf-token": proof}).status_code == 201
        assert browser.post("/logout").status_code == 403
        assert browser.post("/logout", data={"csrf": proof}).status_code == 303
        browser.cookies.set("pullback_session", right.cookies["pullback_session"])  # as if somebody had kept it
        assert browser.get("/jobs").status_code == 401


def test_after_signing_in_one_stays_on_this_site(guarded_base):
    for elsewhere in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/logout"):
        answer = httpx.post(f"{guarded_base}/login", data={"token": "the-secret", "next": elsewhere})
        assert answer.headers["location"] == "/", elsewhere


def test_a_form_of_another_site_signs_nobody_in(guarded_base):
    answer = httpx.post(
        f"{guarded_base}/login", data={"token": "the-secret"}, headers={"origin": "https://evil.example"}
    )
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_project_is_found_at_its_own_address(base):
    answer = httpx.get(f"{base}/projects/pullback")
    assert (answer.status_code, answer.headers["location"]) == (307, "/?project=pullback")


def test_every_page_is_there_as_markdown_with_the_words_it_shows(base):
    sha = httpx.get(f"{base}/overview.json?project=pullback").json()["commit"]["sha"]
    report = httpx.get(f"{base}/api/v1/reports?limit=1").json()["items"][0]["id"]
    explored = "workload=dense_bias_act&metric=time"
    for address, words in (
        ("/overview.md?project=pullback", "| case | unfused | fused | stateful |"),
        (f"{DENSE}.md", "| commit | time: unfused | time: fused | time: stateful |"),
        (f"/projects/pullback/explore.md?{explored}", "| case | variant | metric | machine | newest |"),
        (f"/projects/pullback/commits/{sha}.md", "| report | machine | suite | format | cases | failures | state |"),
        (f"/projects/pullback/commits/{sha}/cases/dense_bias_act%5Bn=100,act=tanh,f4,cpu%5D.md", "groups"),
        (f"/reports/{report}.md", "| variant | time | ÷ unfused |"),
        ("/fleet.md", "| machine | agents |"),
        ("/machines/1.md", "## Recent reports"),
        ("/jobs.md", "# Jobs"),
        ("/settings.md", "| project | readable by |"),
        ("/settings/projects/pullback.md", "# "),
        ("/settings/tokens.md", "# Tokens"),
        ("/settings/audit.md", "# Audit log"),
        ("/boards.md", "# Boards"),
        ("/help.md", "## Reading a number"),
    ):
        answer = httpx.get(base + address)
        assert answer.status_code == 200, address
        assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
        assert words in answer.text, address
        assert "<" not in re.sub(r"`[^`]*`|\\<", "", answer.text.split("```")[0]), address
    cells = [cell["value"] for cell in _cells(httpx.get(f"{base}/overview.json?project=pullback").json())]
    table = httpx.get(f"{base}/overview.md?project=pullback").text
    assert [value for value in cells if value not in table] == []
    led = httpx.get(f"{base}/overview.md?project=pullback").text
    assert f"({base}/projects/pullback/workloads/dense_bias_act?" in led  # links are whole where they are pasted


def _cells(view):
    return [cell for group in view["heat"]["groups"] for row in group["rows"] for cell in row["cells"]]


def test_a_report_and_lists_are_there_as_numbers(base):
    report = httpx.get(f"{base}/api/v1/reports?limit=1").json()["items"][0]["id"]
    rows = list(csv.DictReader(io.StringIO(httpx.get(f"{base}/reports/{report}.csv").text)))
    assert {row["metric"] for row in rows} >= {"time", "array_bytes"}
    assert all(float(row["value"]) >= 0 for row in rows if not row["failure"] and row["value"])
    fused = next(row for row in rows if row["variant"] == "fused" and row["metric"] == "time")
    assert float(fused["low"]) < float(fused["factor"]) < float(fused["high"])
    for address, column in (
        ("/fleet.csv", "noise_floor"),
        ("/machines/1.csv", "false_alarms"),
        ("/settings/tokens.csv", "scopes"),
        ("/boards.csv", "charts"),
    ):
        assert column in httpx.get(base + address).text.splitlines()[0], address


NUMBERS = frozenset(
    {
        "baseline_seconds", "candidate", "factor", "floor", "groups", "high", "low", "marks", "noise_floor", "reference",
        "seconds", "significance", "since", "threshold", "value",
    }
)  # fmt: skip


def test_columns_of_numbers_hold_nothing_else(base):
    machine = httpx.get(f"{base}/api/v1/machines").json()["items"][0]["id"]
    sha = httpx.get(f"{base}/overview.json?project=pullback").json()["commit"]["sha"]
    report = httpx.get(f"{base}/projects/pullback/commits/{sha}.json").json()["reports"][0]["href"]
    pages = (
        "/overview.csv?project=pullback", f"{DENSE}.csv", "/projects/pullback/explore.csv?workload=dense_bias_act",
        f"/projects/pullback/compare.csv?head={sha}&show=all", "/fleet.csv", f"/machines/{machine}.csv", f"{report}.csv",
        f"/projects/pullback/commits/{sha}/cases/dense_bias_act%5Bn=100,act=tanh,f4,cpu%5D.csv",
    )  # fmt: skip
    filled = set()
    for address in pages:
        for row in csv.DictReader(io.StringIO(httpx.get(base + address).raise_for_status().text)):
            for column in NUMBERS & row.keys():
                if row[column]:
                    float(row[column])
                    filled.add(column)
    assert NUMBERS - filled <= {"floor", "significance", "threshold"}  # nobody compared a commit with itself, nor two


def test_reports_and_jobs_of_one_day_are_told_apart(empty_base):
    first = made_report(3, project="demo")
    second = {**first, "id": "01234567-89ab-4def-8123-456789abcde2"}
    third = {**first, "id": "01234567-89ab-4def-8123-456789abcde3", "started_at": "2026-01-04T00:05:01Z"}
    for report in (first, second, third):
        assert httpx.post(f"{empty_base}/api/v1/reports", json=report).status_code == 201
    sha = first["commit"]["sha"]
    for gpu in ("h100", "h200"):
        job = {"project": "demo", "commit": {"sha": sha}, "suite": "quick", "requires": {"gpu": gpu}}
        assert httpx.post(f"{empty_base}/api/v1/jobs", json=job).status_code == 201
    page = httpx.get(f"{empty_base}/projects/demo/commits/{sha}.md").text
    rows = [line for line in page.splitlines() if line.startswith("| [")]
    words = [re.sub(r"\]\(.*?\)", "", row) for row in rows]  # without where they lead
    assert len(words) == len(set(words)) == 5
    shown = httpx.get(f"{empty_base}/projects/demo/commits/{sha}").text
    assert ">2026-01-04 00:05:01 UTC</time></a>" in shown


def test_pages_with_forms_have_other_formats_as_well(base):
    assert httpx.get(f"{base}/login.json?next=/jobs").json() == {
        "next": "/jobs",
        "needed": False,
        "refusal": None,
        "in_place": False,
    }
    pin = httpx.get(f"{base}/boards/pin.json", params={"chart": f"{DENSE}?plot=time"}).json()
    assert pin["title"] == "dense_bias_act, time"
    assert httpx.get(f"{base}/projects/pullback/compare.json").json()["machines"]


def test_formats_are_as_well_guarded_as_their_pages(guarded_base):
    for page in ("/settings/audit", "/settings/tokens", "/fleet", "/jobs"):
        for suffix in (".json", ".csv", ".md"):
            assert httpx.get(guarded_base + page + suffix).status_code == 401, page + suffix
    assert httpx.get(f"{guarded_base}/help.md").status_code == 200


def test_another_machine_is_shown_though_it_lacks_the_metric_that_was_chosen(guarded_base):
    with httpx.Client(base_url=guarded_base, headers={"authorization": "Bearer the-secret"}) as client:
        for machine in ("full", "bare"):
            report = made_report(3, project="metrics", machine=machine)
            for case in report["cases"]:
                for variant in case["variants"]:
                    if machine == "bare":
                        variant["metrics"].pop("array_allocs", None)
            assert client.post("/api/v1/reports", json=report).status_code == 201
        page = "/projects/metrics/workloads/dense_bias_act"
        assert "memory=array_allocs" in client.get(f"{page}?machine=full&memory=array_allocs").text
        answer = client.get(f"{page}?machine=bare&memory=array_allocs")
        assert answer.status_code == 200
        assert "bare has not measured arrays of this case; shown is array bytes" in text_of(answer.text)
        assert client.get(f"{page}?machine=bare&memory=nothing").status_code == 404
