"""A stored file that is not as it was written takes no page away: rows still say what was measured. No browser is needed."""

import httpx
import psycopg
import pytest
from tests.dashboards.browser.conftest import made_report, serving

from pullback_dashboards import links
from pullback_service.reports.codecs import packed


@pytest.fixture(scope="module")
def filled(module_database_url):
    """Three reports: the address of the service, and the documents."""
    reports = [made_report(place) for place in (0, 1, 2)]
    with serving(module_database_url) as base:
        for report in reports:
            httpx.post(f"{base}/api/v1/reports", json=report).raise_for_status()
        yield base, reports


@pytest.fixture
def store(filled, module_database_url):
    """Store something else in place of the second report's body, until the test ends."""
    _, reports = filled
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        ((body,),) = connection.execute("SELECT body FROM report WHERE id = %s", [reports[1]["id"]]).fetchall()

        def stored(content):
            changed = connection.execute("UPDATE report SET body = %s WHERE id = %s", [content(body), reports[1]["id"]])
            assert changed.rowcount == 1

        yield stored
        stored(lambda whole: whole)


@pytest.fixture
def damaged(filled, store):
    """The second report has one bit changed where it is stored."""

    def flipped(body):
        middle = len(body) // 2
        return body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]

    store(flipped)
    return filled


def test_report_and_commit_say_what_rows_still_say(damaged):
    base, (_, report, _) = damaged
    for path in (f"/reports/{report['id']}", f"/projects/pullback/commits/{report['commit']['sha']}"):
        page = httpx.get(base + path)
        assert page.status_code == 200
        assert "is damaged" in page.text
        assert "dense_bias_act" in page.text


def test_a_case_says_so_and_its_neighbour_goes_without_it(damaged):
    base, (_, here, after) = damaged
    label = httpx.get(f"{base}/reports/{after['id']}.json").json()["cases"][0]["case"]
    page, next_page = (
        httpx.get(f"{base}/projects/pullback/commits/{report['commit']['sha']}/cases/{label}.json")
        for report in (here, after)
    )
    assert (page.status_code, "is damaged" in page.text) == (410, True)
    assert next_page.status_code == 200


def test_programs_are_told_with_a_status_of_its_own(damaged):
    base, (_, report, _) = damaged
    for path in ("", "/body"):
        answer = httpx.get(f"{base}/api/v1/reports/{report['id']}{path}")
        assert answer.status_code == 410
        assert answer.json()["type"].endswith("damaged")


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "content", [b"{not json", b"", b"{}", b"[]", b'"\xff"', b'{"cases": null}', b'{"cases": [{"case": {}}]}']
)
def test_a_file_that_unpacks_to_no_report_is_told_like_any_damage(filled, store, content):
    base, reports = filled
    store(lambda _: packed(content))
    _, here, after = reports
    label = httpx.get(f"{base}/reports/{after['id']}.json").json()["cases"][0]["case"]
    report, case, next_case = (
        f"/reports/{here['id']}",
        links.case("pullback", here["commit"]["sha"], label),
        links.case("pullback", after["commit"]["sha"], label),
    )
    answers = {
        **{report + suffix: 200 for suffix in ("", ".json", ".csv", ".md")},
        **{case + suffix: 410 for suffix in (".json", ".csv", ".md")},
        **{next_case + suffix: 200 for suffix in ("", ".json", ".csv", ".md")},
        f"/projects/pullback/commits/{here['commit']['sha']}": 200,
        f"/api/v1/reports/{here['id']}": 410,
        f"/api/v1/reports/{here['id']}/body": 200,
    }
    assert {path: httpx.get(base + path).status_code for path in answers} == answers
