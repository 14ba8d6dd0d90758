"""A stored file that is not as it was written takes no page away: rows still say what was measured. No browser is needed."""

import httpx
import psycopg
import pytest
from tests.dashboards.browser.conftest import made_report

from pullback_dashboards import links
from pullback_service.reports.packing import packed


@pytest.fixture
def damaged(empty_base, database_url):
    """Three reports of which the second was changed where it is stored: the address of the service, and the documents."""
    reports = [made_report(place) for place in (0, 1, 2)]
    for report in reports:
        httpx.post(f"{empty_base}/api/v1/reports", json=report).raise_for_status()
    with psycopg.connect(database_url) as connection:
        changed = connection.execute(
            "UPDATE report SET body = set_byte(body, length(body) / 2, get_byte(body, length(body) / 2) # 1) WHERE id = %s",
            [reports[1]["id"]],
        )
        assert changed.rowcount == 1
    return empty_base, reports


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


@pytest.mark.parametrize(
    "content", [b"{not json", b"", b"{}", b"[]", b'"\xff"', b'{"cases": null}', b'{"cases": [{"case": {}}]}']
)
def test_a_file_that_unpacks_to_no_report_is_told_like_any_damage(empty_base, database_url, content):
    reports = [made_report(place) for place in (0, 1, 2)]
    for report in reports:
        httpx.post(f"{empty_base}/api/v1/reports", json=report).raise_for_status()
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE report SET body = %s WHERE id = %s", [packed(content), reports[1]["id"]])
    _, here, after = reports
    label = httpx.get(f"{empty_base}/reports/{after['id']}.json").json()["cases"][0]["case"]
    report, case, next_case = (
        f"/reports/{here['id']}",
        links.case("pullback", here["commit"]["sha"], label),
        links.case("pullback", after["commit"]["sha"], label),
    )
    answers = {
        **{report + twin: 200 for twin in ("", ".json", ".csv", ".md")},
        **{case + twin: 410 for twin in (".json", ".csv", ".md")},
        **{next_case + twin: 200 for twin in ("", ".json", ".csv", ".md")},
        f"/projects/pullback/commits/{here['commit']['sha']}": 200,
        f"/api/v1/reports/{here['id']}": 410,
        f"/api/v1/reports/{here['id']}/body": 200,
    }
    assert {path: httpx.get(empty_base + path).status_code for path in answers} == answers
