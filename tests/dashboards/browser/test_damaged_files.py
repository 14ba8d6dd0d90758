"""A stored file that is not as it was written takes no page away: rows still say what was measured. No browser is needed."""

import httpx
import psycopg
import pytest
from tests.dashboards.browser.conftest import made_report


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
